import { messageOf } from "@tscni/types";

/** What an ADD has done so far, and how to take it back. */
export class Undo {
  readonly #steps: (() => void)[] = [];

  /** Registers the way back from the step that has just succeeded. */
  defer(step: () => void): void {
    this.#steps.push(step);
  }

  /** Takes everything back, last step first, going on past failures. Returns what could not be taken back. */
  run(): string[] {
    const failures: string[] = [];
    for (let step = this.#steps.pop(); step !== undefined; step = this.#steps.pop()) {
      try {
        step();
      } catch (error) {
        failures.push(messageOf(error));
      }
    }
    return failures;
  }
}
