import { expect, test } from "vitest";
import { messageLines } from "./message.ts";

test.each([
  ["plain", "plain", []],
  ["busy; later", "busy; later", []],
  [
    'busy; later\nbridge ADD for network "n" failed after 3 ms: exit status 1',
    "busy; later",
    ['bridge ADD for network "n" failed after 3 ms: exit status 1'],
  ],
  [
    'busy; bridge ADD for network "n" failed after 1.2 s: signal: killed\nstderr: a\nb',
    "busy",
    ['bridge ADD for network "n" failed after 1.2 s: signal: killed', "stderr: a", "b"],
  ],
  ["no paths provided; what to do: set CNI_PATH", "no paths provided", ["what to do: set CNI_PATH"]],
  [
    "busy; x VERSION failed after 2 ms: exit status 1\nrolled back: nothing",
    "busy",
    ["x VERSION failed after 2 ms: exit status 1", "rolled back: nothing"],
  ],
  [
    "one; a DEL failed after 2 ms: x\n\ntwo; b DEL failed after 2 ms: y",
    "one",
    ["a DEL failed after 2 ms: x", "two", "b DEL failed after 2 ms: y"],
  ],
])("%j", (text, headline, more) => expect(messageLines(text)).toEqual({ headline, more }));
