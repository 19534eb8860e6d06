import { joinErrors } from "@tscni/types";

/**
 * Runs each step, going on past failures, and then throws what went wrong. Without an await between: under the lock
 * nothing else may run in this thread, as it would wait for the lock for ever.
 */
export function settle(steps: readonly (() => void)[]): void {
  const errors: unknown[] = [];
  for (const step of steps) {
    try {
      step();
    } catch (error) {
      errors.push(error);
    }
  }
  const joined = joinErrors(errors);
  if (joined) throw joined;
}
