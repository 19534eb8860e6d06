import { expect, test } from "vitest";
import { checkList } from "./list.ts";

const good = { cniVersion: "1.1.0", name: "n", plugins: [{ type: "bridge" }] };

test.each([
  ["complete", good],
  [
    "with every key",
    {
      ...good,
      cniVersions: ["1.0.0", "9.9.9"],
      disableCheck: "True",
      disableGC: false,
      loadOnlyInlinedPlugins: true,
    },
  ],
  ["plugins only in files beside it", { cniVersion: "1.0.0", name: "n" }],
])("%s: nothing wrong", (_, conf) => expect(checkList(conf)).toEqual([]));

test.each([
  ["[]", "", "error", "[] is not an object"],
  ['{"name":null}', "name", "error", "null is not a string"],
  ['{"name":"a b"}', "name", "error", '"a b" is not a name of letters'],
  ['{"name":"../x"}', "name", "error", '"../x" is not a name of letters'],
  ['{"name":""}', "name", "error", '"" is not a name of letters'],
  ['{"Name":"n","name":"n"}', "Name", "warning", 'unknown key, read by nobody; did you mean "name"?'],
  ['{"cniVersion":1}', "cniVersion", "error", "1 is not a string"],
  ['{"cniVersion":"1.0"}', "cniVersion", "error", '"1.0" is not a known version: expected one of 0.1.0'],
  ['{"cniVersion":"2.0.0"}', "cniVersion", "error", '"cniVersions" lets older tools choose'],
  ['{"cniVersion":""}', "cniVersion", "warning", "missing, so 0.1.0 is assumed"],
  ['{"cniVersions":"1.0.0"}', "cniVersions", "error", "is not a list of versions"],
  ['{"cniVersions":["1.0.0",3]}', "cniVersions[1]", "error", "3 is not a version"],
  ['{"cniVersion":"8.0.0","cniVersions":["9.0.0"]}', "cniVersions", "error", 'none of ["9.0.0"] is known'],
  ['{"disableGC":"yes"}', "disableGC", "error", '"yes" is not true or false'],
  ['{"loadOnlyInlinedPlugins":"true","plugins":null}', "plugins", "error", "null is not a list"],
  ['{"plugins":[]}', "plugins", "error", "an empty list"],
  ['{"plugins":{}}', "plugins", "error", "{} is not a list"],
  ['{"plugin":[]}', "plugin", "warning", 'did you mean "plugins"?'],
  ['{"disableChek":true}', "disableChek", "warning", 'did you mean "disableCheck"?'],
  ['{"vendor":true}', "vendor", "warning", "unknown key, read by nobody"],
])("%s", (text, path, level, message) => {
  const raw: unknown = JSON.parse(text);
  const conf = Array.isArray(raw) ? raw : { ...good, ...(raw as object) };
  expect(checkList(conf)).toEqual([{ path, level, message: expect.stringContaining(message) }]);
});

test("all that is wrong is told, not only the first", () => {
  const found = checkList({ type: "bridge", nam: "n" }).map(({ path, level }) => `${level} ${path}`);
  expect(found.toSorted()).toEqual([
    "error name",
    "error plugins",
    "warning cniVersion",
    "warning nam",
    "warning type",
  ]);
});
