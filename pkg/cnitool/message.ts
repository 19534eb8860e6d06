/** An error's text for a person: its first line, which is all that Go's cnitool would say, and the rest. */
export interface Message {
  headline: string;
  /** Lines with what else is known: how long the plugin ran, how it ended, what to do about it. */
  more: string[];
}

/** Where libcni begins to tell what Go's does not: about the run, advice, what became of a rollback. */
const extras =
  /; (?=[^\s;]+ [A-Z]+(?: for network "[^"\n]*")? failed after \d|what to do: |did you mean |rolled back: |rolling back failed, )/g;

/** Splits the text of an error from libcni. Errors that were joined follow each other in `more`. */
export function messageLines(text: string): Message {
  const [headline = "", ...more] = text.replace(extras, "\n").split("\n");
  return { headline, more: more.filter((line) => line.trim() !== "") };
}

/** The error as stderr shows it: the first line after `Error: `, the rest indented below. */
export function errorText({ headline, more }: Message): string {
  return `Error: ${headline}\n${more.map((line) => `  ${line}\n`).join("")}`;
}
