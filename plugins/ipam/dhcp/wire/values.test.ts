import fc from "fast-check";
import { expect, test } from "vitest";
import { domainName, domainOption, searchOption } from "./names.ts";
import { Option, type Options } from "./options.ts";
import { routesOf } from "./routes.ts";

const ascii = (text: string): number[] => [...text].map((c) => c.charCodeAt(0));
const optionsOf = (code: number, ...value: number[]): Options => new Map([[code, Uint8Array.from(value)]]);
const label = (text: string): number[] => [text.length, ...ascii(text)];

test("a domain is a name, or nothing: it goes into a file of lines", () => {
  const read = (text: string) => domainOption(optionsOf(Option.DomainName, ...ascii(text)));
  expect(read("example.org")).toBe("example.org");
  expect(read("example.org.\0junk")).toBe("example.org");
  expect(read("a_b-c.d")).toBe("a_b-c.d");
  for (const bad of [
    "",
    ".",
    "a..b",
    "a b",
    "a\nnameserver 6.6.6.6",
    `${"a".repeat(64)}.org`,
    "x.".repeat(130),
  ])
    expect(read(bad), JSON.stringify(bad)).toBeUndefined();
  expect(domainOption(new Map())).toBeUndefined();
});

test("a search list, compressed as in RFC 3397's example", () => {
  const list = [...label("eng"), ...label("apple"), ...label("com"), 0, ...label("marketing"), 0xc0, 4];
  expect(searchOption(optionsOf(Option.DomainSearch, ...list))).toEqual([
    "eng.apple.com",
    "marketing.apple.com",
  ]);
});

test.each([
  ["a pointer to itself", [0xc0, 0]],
  ["two that point at each other", [...label("a"), 0xc0, 4, 0xc0, 2]],
  ["a pointer forwards", [0xc0, 2, ...label("a"), 0]],
  ["a label that goes beyond the end", [5, 97]],
  ["no end", label("a")],
  ["half a pointer", [0xc0]],
  ["an extended label", [0x41, 0]],
])("a search list that is %s ends there", (_, value) => {
  expect(searchOption(optionsOf(Option.DomainSearch, ...value))).toEqual([]);
});

test("no search list keeps us for ever, and only names come out of it", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 300 }), (value) => {
      for (const name of searchOption(new Map([[Option.DomainSearch, value]])))
        expect(domainName(name)).toBe(name);
    }),
  );
});

const routers = [Option.Router, Uint8Array.of(10, 0, 0, 1, 10, 0, 0, 2)] as const;
const statics = [
  Option.StaticRoute,
  Uint8Array.of(192, 168, 5, 0, 10, 0, 0, 9, 10, 1, 2, 0, 10, 0, 0, 8),
] as const;
const byDefault = { dst: "0.0.0.0/0", gw: "10.0.0.1" };

test("the default route goes to the first router; static routes have the width of their class", () => {
  expect(routesOf(new Map([routers]))).toEqual([byDefault]);
  expect(routesOf(new Map([routers, statics]))).toEqual([
    { dst: "192.168.5.0/24", gw: "10.0.0.9" },
    { dst: "10.0.0.0/8", gw: "10.0.0.8" },
    byDefault,
  ]);
  expect(routesOf(new Map())).toEqual([]);
  const odd = [0, 0, 0, 0, 10, 0, 0, 9, 230, 0, 0, 0, 10, 0, 0, 9, 172, 16, 0, 0, 10, 0, 0, 9, 1];
  expect(routesOf(optionsOf(Option.StaticRoute, ...odd))).toEqual([{ dst: "172.16.0.0/16", gw: "10.0.0.9" }]);
});

test("classless routes stand alone; without a router the destination is on the link", () => {
  const value = [0, 10, 0, 0, 3, 24, 192, 168, 7, 10, 0, 0, 4, 32, 169, 254, 169, 254, 0, 0, 0, 0];
  expect(routesOf(new Map([routers, statics, [121, Uint8Array.from(value)]]))).toEqual([
    { dst: "0.0.0.0/0", gw: "10.0.0.3" },
    { dst: "192.168.7.0/24", gw: "10.0.0.4" },
    { dst: "169.254.169.254/32", gw: "0.0.0.0", scope: 253 },
  ]);
  expect(routesOf(optionsOf(121, 20, 10, 1, 255, 10, 0, 0, 1))).toEqual([
    { dst: "10.1.240.0/20", gw: "10.0.0.1" },
  ]);
});

test.each([
  ["too wide", [33, 1, 2, 3, 4, 5, 1, 2, 3, 4]],
  ["cut off", [24, 192, 168, 7, 10, 0, 0]],
])("classless routes that are %s count for nothing", (_, value) => {
  expect(routesOf(new Map([routers, [121, Uint8Array.from(value)]]))).toEqual([byDefault]);
});
