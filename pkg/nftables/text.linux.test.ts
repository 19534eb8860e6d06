import { expect, test } from "vitest";
import { address, identifier, interfaceName, nft, quoted } from "./index.ts";

test("a statement is its constant parts and checked values", () => {
  const set = identifier("sources4");
  expect(
    `${nft`add element inet t ${set} { ${address("10.1.0.5")} . ${80} comment ${quoted("a b")} }`}`,
  ).toBe('add element inet t sources4 { 10.1.0.5 . 80 comment "a b" }');
  expect(`${nft`{ ${[address("10.1.0.5"), address("10.1.0.6")]} }`}`).toBe("{ 10.1.0.5, 10.1.0.6 }");
});

test.each(["", "1a", "a b", "a;b", "a\nb", 'a"b', "a{b", "@a", "a".repeat(128)])("%j is no name", (text) => {
  expect(() => identifier(text)).toThrow(TypeError);
});

test.each(["", "10.1.0.5; flush ruleset", "10.1.0.5 }", "::1\n", "g::1", "eth0"])(
  "%j is no address",
  (text) => {
    expect(() => address(text)).toThrow(TypeError);
  },
);

test.each(["", 'a"b', "a\nb", "a\\b", "veth*", "x".repeat(16)])("%j is no interface name", (text) => {
  expect(() => interfaceName(text)).toThrow(TypeError);
});

test.each([Number.NaN, 1.5, Number.POSITIVE_INFINITY])("%d is no number", (number) => {
  expect(() => nft`${number}`).toThrow(TypeError);
});

test("quotes hold what they may, cut to what fits", () => {
  expect(`${quoted('a"; flush ruleset; #\n\\')}`).toBe('"a_; flush ruleset; #__"');
  expect(`${quoted("ü".repeat(100))}`).toBe(`"${"ü".repeat(63)}"`);
  expect(`${quoted("😀".repeat(40))}`).toBe(`"${"😀".repeat(31)}"`);
});
