import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  CniError,
  joinErrors,
  toCniError,
  verifyContainerId,
  verifyInterfaceName,
  verifyNetworkName,
} from "./index.ts";

const codeOf = (f: () => void): number | undefined => {
  try {
    f();
  } catch (error) {
    return (error as CniError).code;
  }
  return undefined;
};

test.each([
  ["eth0", undefined],
  ["0123456789abcde", undefined],
  ["a.b-c_d@e", undefined],
  ["é".repeat(7), undefined],
  ["", "interface name is empty"],
  ["0123456789abcdef", "interface name is too long"],
  ["é".repeat(8), "interface name is too long"],
  [".", "interface name is . or .."],
  ["..", "interface name is . or .."],
  ["a/b", "interface name contains / or : or whitespace characters"],
  ["a:b", "interface name contains / or : or whitespace characters"],
  ["a b", "interface name contains / or : or whitespace characters"],
  ["a\tb", "interface name contains / or : or whitespace characters"],
  ["a\u00a0b", "interface name contains / or : or whitespace characters"],
  ["a\u0085b", "interface name contains / or : or whitespace characters"],
  ["a\0b", "interface name contains / or : or whitespace characters"],
])("interface name %j: %s", (name, problem) => {
  if (problem === undefined) verifyInterfaceName(name);
  else expect(() => verifyInterfaceName(name)).toThrow(expect.objectContaining({ code: 4, msg: problem }));
});

describe("container ids and network names", () => {
  const first = "abcxyzABCXYZ0189";
  const allowed = fc
    .tuple(fc.constantFrom(...first), fc.string({ unit: fc.constantFrom(...`${first}_.-`), maxLength: 80 }))
    .map(([a, b]) => a + b);

  test("letters, digits, and later _ . - are fine", () => {
    fc.assert(
      fc.property(allowed, (name) => {
        verifyContainerId(name);
        verifyNetworkName(name);
      }),
    );
  });

  test("one other character anywhere is refused", () => {
    const other = fc.string({ minLength: 1, maxLength: 1 }).filter((c) => !/[a-zA-Z0-9_.-]/.test(c));
    fc.assert(
      fc.property(allowed, other, fc.nat(80), (name, c, at) => {
        const bad = name.slice(0, at) + c + name.slice(at);
        expect(codeOf(() => verifyContainerId(bad))).toBe(4);
        expect(codeOf(() => verifyNetworkName(bad))).toBe(7);
      }),
    );
  });

  test.each(["_a", ".a", "-a", "a\n", "\na", "a/../b", "ä"])("%j is refused", (name) => {
    expect(codeOf(() => verifyContainerId(name))).toBe(4);
    expect(codeOf(() => verifyNetworkName(name))).toBe(7);
  });

  test("the empty one", () => {
    expect(codeOf(() => verifyContainerId(""))).toBe(3);
    expect(codeOf(() => verifyNetworkName(""))).toBe(7);
  });
});

describe("errors", () => {
  test("the error object has details only when there are some", () => {
    expect(new CniError(7, "m").toObject()).toEqual({ code: 7, msg: "m" });
    expect(new CniError(7, "m", { details: "d" }).toObject("1.0.0")).toEqual({
      cniVersion: "1.0.0",
      code: 7,
      msg: "m",
      details: "d",
    });
    expect(new CniError(7, "m", { details: "d" }).message).toBe("m; d");
  });

  test("what has no code is 999, and joined errors have the first one's", () => {
    expect(toCniError("x")).toMatchObject({ code: 999, msg: "x" });
    expect(joinErrors([])).toBeUndefined();
    const one = new CniError(11, "a");
    expect(joinErrors([one])).toBe(one);
    expect(joinErrors([one, new Error("b")])).toMatchObject({ code: 11, msg: "a\nb" });
  });
});
