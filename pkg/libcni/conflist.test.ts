import { CniError } from "@tscni/types";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { confListFromConf, type NetworkConfigList, parseConfList, parsePluginConf } from "./index.ts";
import { goJson, parseJson, sortKeys, withKeys } from "./json.ts";

const parse = (conf: object): NetworkConfigList => parseConfList(JSON.stringify(conf));

describe("parseConfList", () => {
  test("reads a whole list and keeps its text", () => {
    const text = `{ "cniVersion": "1.0.0", "name": "net1", "disableCheck": true, "plugins": [
      { "Type": "bridge", "Capabilities": {"portMappings": true, "mac": false}, "IPAM": {"type": "host-local"}, "x": 1 } ] }`;
    expect(parseConfList(text, { source: "/etc/cni/net.d/10-a.conflist" })).toEqual({
      name: "net1",
      cniVersion: "1.0.0",
      disableCheck: true,
      disableGC: false,
      loadOnlyInlinedPlugins: false,
      bytes: text,
      source: "/etc/cni/net.d/10-a.conflist",
      plugins: [
        expect.objectContaining({
          type: "bridge",
          name: "",
          cniVersion: "",
          capabilities: { portMappings: true, mac: false },
          ipam: { type: "host-local" },
        }),
      ],
    });
  });

  test.each([
    [["1.0.0", "0.4.0"], undefined, "1.0.0"],
    [["0.4.0"], "1.0.0", "1.0.0"],
    [["1.1.0", "1.2.0", "9.0.0"], "0.4.0", "1.1.0"],
    [["2.0.0"], "3.0.0", "3.0.0"],
    [[], "0.3.1", "0.3.1"],
    [["0.10.0", "0.9.0"], undefined, "0.10.0"],
    [undefined, "7.0.0", "7.0.0"],
    [undefined, undefined, ""],
  ])("cniVersions %j with cniVersion %j gives %j", (cniVersions, cniVersion, chosen) => {
    expect(parse({ name: "n", cniVersions, cniVersion, plugins: [{ type: "a" }] }).cniVersion).toBe(chosen);
  });

  test.each(["disableCheck", "disableGC", "loadOnlyInlinedPlugins"] as const)("%s", (key) => {
    const read = (value: unknown) => parse({ name: "n", plugins: [{ type: "a" }], [key]: value })[key];
    expect([read(true), read("TRUE"), read("true"), read(false), read("False"), read(undefined)]).toEqual([
      true,
      true,
      true,
      false,
      false,
      false,
    ]);
    expect(() => read("yes")).toThrow(`error parsing configuration list: invalid value "yes" for ${key}`);
    expect(() => read(1)).toThrow(`error parsing configuration list: invalid type number for ${key}`);
  });

  const list = "error parsing configuration list: ";
  const plugin = "failed to parse plugin config 0: error parsing configuration: ";
  test.each<[object | null, string]>([
    [{}, `${list}no name`],
    [{ Name: "n" }, `${list}no name (the key "Name" must be written "name")`],
    [{ name: 1 }, `${list}invalid name type number`],
    [{ name: "n", cniVersion: 1 }, `${list}invalid cniVersion type number`],
    [{ name: "n", cniVersions: "1.0.0" }, `${list}invalid type for cniVersions: string`],
    [{ name: "n", cniVersions: [1] }, `${list}invalid type for cniVersions index 0: number`],
    [{ name: "n", cniVersions: ["x"] }, `${list}invalid cniVersions entry x at index 0: it is not a version`],
    [{ name: "n", plugins: {} }, `${list}invalid 'plugins' type an object`],
    [{ name: "n", plugins: [] }, `${list}no plugins in list`],
    [
      { name: "n", loadOnlyInlinedPlugins: true },
      `${list}\`loadOnlyInlinedPlugins\` is true, and no 'plugins' key`,
    ],
    [{ name: "n", plugins: [{}] }, `${plugin}missing 'type'`],
    [{ name: "n", plugins: [{ type: 3 }] }, `${plugin}type: 3 is not a string`],
    [{ name: "n", plugins: ["a"] }, `${plugin}it is string, not an object`],
    [
      { name: "n", plugins: [{ type: "a", capabilities: { mac: 1 } }] },
      `${plugin}capabilities.mac: 1 is not true or false`,
    ],
    [{ name: "n", plugins: [{ type: "a", ipam: "x" }] }, `${plugin}ipam: "x" is not an object`],
    [null, `${list}it is null, not an object`],
  ])("refuses %j", (conf, message) => {
    expect(() => parseConfList(JSON.stringify(conf))).toThrow(
      expect.objectContaining({ msg: message, code: 7 }),
    );
  });

  test("what is no JSON is told with the file", () => {
    const error = (() => {
      try {
        return parseConfList('{"name": ', { source: "/x/10.conflist" });
      } catch (e) {
        return e;
      }
    })();
    expect(error).toBeInstanceOf(CniError);
    expect(error).toMatchObject({ code: 6, details: "in /x/10.conflist" });
    expect((error as CniError).msg).toMatch(/^error parsing configuration list: ./);
  });

  test("a list without plugins is for drop-in files", () => {
    expect(parse({ name: "n" }).plugins).toEqual([]);
  });

  test("any text gives a list or a CniError", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.json().map((j) => `{"name":"n","plugins":[${j}]}`),
        ),
        (text) => {
          try {
            parseConfList(text);
          } catch (error) {
            expect(error).toBeInstanceOf(CniError);
          }
        },
      ),
    );
  });

  test("depth is no crash", () => {
    const deep = `${"[".repeat(100_000)}1234567890123456789`;
    expect(() => parseConfList(deep)).toThrow(CniError);
  });
});

test("a single plugin becomes a list of one, its text as Go's", () => {
  const conf = parsePluginConf('{"type":"bridge","name":"n","cniVersion":"0.4.0","b":{"z":1,"a":"<>"}}');
  const list = confListFromConf(conf);
  expect(list).toMatchObject({ name: "n", cniVersion: "0.4.0" });
  expect(list.bytes).toBe(
    '{"cniVersion":"0.4.0","name":"n","plugins":[{"b":{"a":"\\u003c\\u003e","z":1},"cniVersion":"0.4.0","name":"n","type":"bridge"}]}',
  );
});

describe("JSON", () => {
  test("whole numbers beyond a double's precision come out as they went in", () => {
    const text = '{"a":12345678901234567890,"b":[-9007199254740993],"c":1.5,"d":9007199254740991}';
    expect(JSON.stringify(parseJson(text, ""))).toBe(text);
    expect(parseJson("[0.1234567890123456,1e20]", "")).toEqual([0.1234567890123456, 1e20]);
  });

  test("what is named __proto__ is a key like any other", () => {
    const text = '{"__proto__":{"x":1},"a":2}';
    const value = parseJson(text, "") as Record<string, unknown>;
    expect(JSON.stringify(withKeys(value, { name: "n" }))).toBe('{"__proto__":{"x":1},"a":2,"name":"n"}');
    expect(JSON.stringify(sortKeys(value))).toBe(text);
    expect(({} as Record<string, unknown>).x).toBeUndefined();
  });

  test("a key that is set is gone in every other case", () => {
    expect(withKeys({ NAME: 1, a: 2, Name: 3 }, { name: "n" })).toEqual({ a: 2, name: "n" });
  });

  test("any JSON survives", () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        const value = parseJson(text, "");
        expect(JSON.parse(goJson(value))).toEqual(JSON.parse(text));
        expect(JSON.parse(goJson(sortKeys(value)))).toEqual(JSON.parse(text));
        expect(goJson(value)).not.toMatch(/[<>&\u2028\u2029]/);
      }),
    );
  });
});
