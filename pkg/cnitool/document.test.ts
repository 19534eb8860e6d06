import * as fc from "fast-check";
import { expect, test } from "vitest";
import { parseDocument, SyntaxProblem } from "./document.ts";

test("agrees with JSON.parse on every JSON text", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(undefined, 2, "\t"), (value, indent) => {
      const text = JSON.stringify(value, null, indent);
      expect(parseDocument(text).value).toEqual(JSON.parse(text));
    }),
  );
});

test("agrees with JSON.parse on what is not JSON", () => {
  const pieces = fc.constantFrom(
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    '"a"',
    '"',
    "1",
    "-",
    "0",
    ".5",
    "e",
    "tru",
    "true",
    "null",
    " ",
    "\\",
    "\u0001",
  );
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 8 }), (parts) => {
      const text = parts.join("");
      const good = parses(() => JSON.parse(text));
      expect(parses(() => parseDocument(text))).toBe(good);
    }),
    { numRuns: 2000 },
  );
});

function parses(parse: () => unknown): boolean {
  try {
    parse();
    return true;
  } catch {
    return false;
  }
}

const text = `{
  "name": "n",
  "plugins": [
    { "type": "bridge",
      "ipam": { "type": "host-local" } }
  ]
}`;

test.each([
  ["name", 2, 3],
  ["plugins[0]", 4, 5],
  ["plugins[0].ipam.type", 5, 17],
  ["plugins[0].ipam.subnet", 5, 7],
  ["plugins[7].type", 3, 3],
  ["nothing", 1, 1],
  ["", 1, 1],
])("%j stands in line %d, column %d", (path, line, column) => {
  expect(parseDocument(text).placeOf(path)).toEqual({ line, column });
});

test.each([
  ["", "expected a value, found the end of the file", 1, 1],
  ['{\n"a" 1}', 'expected ":" after the key "a", found "1"', 2, 5],
  ['{"a":1,}', 'expected a key in double quotes, found "}"', 1, 8],
  ["[1 2]", 'expected "," or "]", found "2"', 1, 4],
  ["{}\n// note", 'expected nothing more after the closing bracket, found "/" (JSON has no comments)', 2, 1],
  ["\ufeff{}", "expected a value, found U+FEFF", 1, 1],
  ["[01]", "expected a value", 1, 2],
  ['["a', "a string without an end", 1, 2],
  ["{} x", "expected nothing more", 1, 4],
  ['["\\x"]', "a string with a bad escape", 1, 2],
  ["[".repeat(5000), "levels deep", 1, 202],
])("%.20s: %s", (broken, message, line, column) => {
  let thrown: unknown;
  try {
    parseDocument(broken);
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(SyntaxProblem);
  expect((thrown as SyntaxProblem).message).toContain(message);
  expect((thrown as SyntaxProblem).place).toEqual({ line, column });
});

test("a key that stands twice is noted, in any case, and the last one counts", () => {
  const { value, repeated } = parseDocument('{"a":1,"x":{"b":1,"B":2},"a":3}');
  expect(value).toEqual({ a: 3, x: { b: 1, B: 2 } });
  expect(repeated.map(({ path }) => path)).toEqual(["x.B", "a"]);
});

test("of what stands twice, the places are those of the last one", () => {
  const { placeOf } = parseDocument('{"a":[{"x":1}],\n"a":[{"x":1},\n2]}');
  expect(placeOf("a[0].x")).toEqual({ line: 2, column: 7 });
  expect(placeOf("a[1]")).toEqual({ line: 3, column: 1 });
});

test("a key called __proto__ is a key", () => {
  const { value } = parseDocument('{"__proto__":{"polluted":true}}');
  expect(Object.keys(value as object)).toEqual(["__proto__"]);
  expect((value as { polluted?: boolean }).polluted).toBeUndefined();
});

test("ten megabytes in one string are read", () => {
  const long = "x".repeat(10_000_000);
  expect(parseDocument(JSON.stringify({ long })).value).toEqual({ long });
});
