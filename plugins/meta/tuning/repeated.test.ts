import fc from "fast-check";
import { expect, test } from "vitest";
import { repeatedKey } from "./repeated.ts";

/** Objects whose keys include what confuses a reader of JSON text. */
const key = fc.oneof(
  fc.string(),
  fc.constantFrom("sysctl", "SysCtl", '"', "\\", "a:b", "{", "}", "[1]", " "),
);
const sysctls = fc.dictionary(key, fc.string(), { minKeys: 1, noNullPrototype: true });
const anything = fc.dictionary(key, fc.jsonValue({ depthSize: "small" }), { noNullPrototype: true });
const indent = fc.constantFrom(0, 1, "\t");

test("no object that JSON.stringify has written has a key twice", () => {
  fc.assert(
    fc.property(sysctls, anything, indent, (sysctl, more, space) => {
      const text = JSON.stringify(
        { before: more, sysctl, args: { cni: { sysctl } }, after: more },
        null,
        space,
      );
      expect(repeatedKey(text, "sysctl")).toBeUndefined();
    }),
  );
});

test("a key that is written once more is found, wherever the object is and however the key is escaped", () => {
  const escaped = (text: string) =>
    `"${[...text].map((c) => (c.length === 1 ? `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}` : c)).join("")}"`;
  fc.assert(
    fc.property(sysctls, anything, fc.boolean(), fc.nat(), (sysctl, more, isEscaped, which) => {
      const keys = Object.keys(sysctl);
      const again = keys[which % keys.length]!;
      const quoted = isEscaped ? escaped(again) : JSON.stringify(again);
      const twice = `{${quoted} : "x", ${JSON.stringify(sysctl).slice(1)}`;
      const text = `{"before":${JSON.stringify(more)},"args":{"cni":{"SYSCTL" :\n${twice}}}}`;
      fc.pre(repeatedKey(`{"before":${JSON.stringify(more)}}`, "sysctl") === undefined);
      expect(repeatedKey(text, "sysctl")).toBe(again);
    }),
  );
});

test("other objects may repeat themselves", () => {
  expect(
    repeatedKey('{"a":1,"a":2,"sysctl":{"x":{"y":1,"y":2},"b":"sysctl","c":[{"d":1,"d":2}]}}', "sysctl"),
  ).toBe(undefined);
});
