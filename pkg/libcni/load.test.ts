import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { confFromFile, confListFromFile, listConfFiles, loadConfList } from "./index.ts";
import { Lab } from "./testing/lab.ts";

let lab: Lab;
let dir = "";
beforeEach(() => {
  lab = new Lab();
  dir = join(lab.dir, "net.d");
});
afterEach(() => lab.close());

const list = (name: string, plugins: object[] | undefined = [{ type: "inline" }], extra: object = {}) =>
  JSON.stringify({ cniVersion: "1.0.0", name, plugins, ...extra });
const types = (name: string) => loadConfList(dir, name).plugins.map(({ type }) => type);

describe("loadConfList", () => {
  test("lists come before single plugins, each sorted by name, and the first match wins", () => {
    lab.write("net.d/00-a.conf", '{"name":"a","type":"single"}');
    lab.write("net.d/20-a.conflist", list("a", [{ type: "second" }]));
    lab.write("net.d/10-a.conflist", list("a", [{ type: "first" }]));
    lab.write("net.d/05-b.json", '{"name":"b","type":"fromjson","cniVersion":"0.3.1"}');
    lab.write("net.d/06-b.conf", '{"name":"b","type":"later"}');
    expect(types("a")).toEqual(["first"]);
    expect(types("b")).toEqual(["fromjson"]);
    expect(loadConfList(dir, "b")).toMatchObject({ cniVersion: "0.3.1", source: join(dir, "05-b.json") });
  });

  test("the folder of the network's name is appended, sorted", () => {
    lab.write("net.d/10-a.conflist", list("a"));
    lab.write("net.d/a/20-x.conf", '{"type":"x"}');
    lab.write("net.d/a/10-y.conf", '{"type":"y"}');
    lab.write("net.d/a/30-z.json", '{"type":"z"}');
    mkdirSync(join(dir, "a", "40-dir.conf"));
    expect(types("a")).toEqual(["inline", "y", "x"]);
    expect(loadConfList(dir, "a").plugins.map(({ source }) => source)).toEqual([
      undefined,
      join(dir, "a", "10-y.conf"),
      join(dir, "a", "20-x.conf"),
    ]);
  });

  test("a list may live from that folder alone", () => {
    lab.write("net.d/10-a.conflist", '{"name":"a","cniVersion":"1.0.0"}');
    expect(() => types("a")).toThrow("no plugin configs found");
    lab.write("net.d/a/x.conf", '{"type":"x"}');
    expect(types("a")).toEqual(["x"]);
  });

  test("loadOnlyInlinedPlugins leaves the folder alone", () => {
    lab.write(
      "net.d/10-a.conflist",
      list("a", undefined, { loadOnlyInlinedPlugins: true, plugins: [{ type: "inline" }] }),
    );
    lab.write("net.d/a/x.conf", '{"type":"x"}');
    expect(types("a")).toEqual(["inline"]);
  });

  test("a name can't lead out of the folder", () => {
    lab.write("outside/x.conf", '{"type":"evil"}');
    const file = lab.write("net.d/10-a.conflist", list("../outside"));
    expect(confListFromFile(file).plugins.map(({ type }) => type)).toEqual(["inline"]);
  });

  test("a broken file before the match ends the search, and is named", () => {
    lab.write("net.d/10-broken.conflist", "{");
    lab.write("net.d/20-a.conflist", list("a"));
    expect(() => types("a")).toThrow(join(dir, "10-broken.conflist"));
  });

  test("a broken file after the match does not matter", () => {
    lab.write("net.d/10-a.conflist", list("a"));
    lab.write("net.d/20-broken.conflist", "{");
    expect(types("a")).toEqual(["inline"]);
  });

  test.each([
    ["nothing at all", {}, "no net configurations found in DIR"],
    ["only lists", { "1.conflist": list("b") }, 'no net configuration with name "a" in DIR'],
    ["only singles", { "1.conf": '{"name":"b","type":"t"}' }, 'no net configuration with name "a" in DIR'],
    ["other files", { "1.txt": "x" }, "no net configurations found in DIR"],
    [
      "a single without type",
      { "1.conf": '{"name":"a"}' },
      "error parsing configuration: missing 'type'; in DIR/1.conf",
    ],
  ])("%s", (_, files, message) => {
    for (const [name, text] of Object.entries(files)) lab.write(`net.d/${name}`, text);
    expect(() => loadConfList(dir, "a")).toThrow(message.replaceAll("DIR", dir));
  });
});

test("files are listed by extension, folders are not", () => {
  for (const name of ["b.conflist", "a.conf", "c.json", "d.txt", "B.conflist"])
    lab.write(`net.d/${name}`, "");
  mkdirSync(join(dir, "e.conf"));
  expect(listConfFiles(dir)).toEqual(
    ["B.conflist", "a.conf", "b.conflist", "c.json"].map((n) => join(dir, n)),
  );
  expect(listConfFiles(dir, [".json"])).toEqual([join(dir, "c.json")]);
  expect(listConfFiles(join(dir, "missing"))).toEqual([]);
  expect(() => listConfFiles(join(dir, "a.conf"))).toThrow("failed to read the folder");
});

test("a file that is missing is named", () => {
  expect(() => confFromFile(join(dir, "x"))).toThrow(`error reading ${join(dir, "x")}: `);
});
