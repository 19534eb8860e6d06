import { joinErrors, messageOf } from "@tscni/types";

/** What an ADD has done so far, and how to take it back. */
export class Undo {
  readonly #steps: (() => void | Promise<void>)[] = [];

  /**
   * Registers the way back from the step that has just succeeded. It runs after `add` has ended, when what that
   * held by `using` is closed: a step opens what it needs itself.
   */
  defer(step: () => void | Promise<void>): void {
    this.#steps.push(step);
  }

  /** Takes everything back, last step first, going on past failures. Returns what could not be taken back. */
  async run(): Promise<string[]> {
    const failures: string[] = [];
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        await step();
      } catch (error) {
        failures.push(messageOf(error));
      }
    }
    return failures;
  }
}

/** Runs every step of a teardown, going on past failures, and then throws all of them as one error. */
export async function attemptAll(...steps: (() => void | Promise<void>)[]): Promise<void> {
  const errors: unknown[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      errors.push(error);
    }
  }
  const joined = joinErrors(errors);
  if (joined) throw joined;
}
