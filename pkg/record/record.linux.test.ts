import { mkdirSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { afterEach, expect, test } from "vitest";
import {
  hasRecord,
  isOnlyOfNetwork,
  isOnlyRecord,
  listRecords,
  readRecord,
  removeRecord,
  staleRecords,
  writeRecord,
} from "./index.ts";

const kind = "test-record"; // below /run/tscni, which is private to the tests
const owner = { network: "net", containerId: "c1", ifName: "eth0" };
const folder = `/run/tscni/${kind}/net`;
afterEach(() => rmSync(`/run/tscni/${kind}`, { recursive: true, force: true }));

test("a record is written, read, replaced and removed", () => {
  expect(readRecord(kind, owner)).toBeUndefined();
  expect(removeRecord(kind, owner)).toBe(false);
  writeRecord(kind, owner, { a: [1, "ü"] });
  expect(readRecord<object>(kind, owner)).toEqual({ a: [1, "ü"] });
  expect(statSync(`${folder}/c1:eth0`).mode & 0o777).toBe(0o600);
  expect(isOnlyOfNetwork(kind, owner)).toBe(true);
  expect(isOnlyOfNetwork(kind, { ...owner, ifName: "eth1" })).toBe(false);
  expect(isOnlyOfNetwork(kind, { ...owner, network: "other" })).toBe(true);
  writeRecord(kind, owner, { b: 2 });
  expect(readRecord<object>(kind, owner)).toEqual({ b: 2 });
  expect(readdirSync(folder)).toEqual(["c1:eth0"]);
  expect(hasRecord(kind, owner)).toBe(true);
  expect(removeRecord(kind, owner)).toBe(true);
  expect(readdirSync(`/run/tscni/${kind}`)).toEqual([]);
});

test("owners with similar or long names are told apart", () => {
  const long = { network: "n".repeat(300), containerId: `${"c".repeat(300)}1`, ifName: "eth0" };
  const owners = [
    owner,
    { ...owner, ifName: "eth1" },
    { ...owner, containerId: "c1.eth0" },
    { ...owner, network: "net2" },
    long,
    { ...long, containerId: `${"c".repeat(300)}2` },
  ];
  for (const [i, each] of owners.entries()) writeRecord(kind, each, { i });
  expect(owners.map((each) => readRecord<object>(kind, each))).toEqual(owners.map((_, i) => ({ i })));
  expect(listRecords(kind, "net").map((r) => `${r.containerId} ${r.ifName}`)).toEqual([
    "c1.eth0 eth0",
    "c1 eth0",
    "c1 eth1",
  ]);
  expect(listRecords(kind, long.network).map((r) => r.containerId)).toContain(long.containerId);
});

test("whether somebody else has a record", () => {
  expect(isOnlyRecord(kind, owner)).toBe(true);
  writeRecord(kind, owner, {});
  expect(isOnlyRecord(kind, owner)).toBe(true);
  for (const other of [
    { ...owner, ifName: "eth1" },
    { ...owner, network: "net2" },
  ]) {
    expect(isOnlyRecord(kind, other)).toBe(false);
    writeRecord(kind, other, {});
    expect(isOnlyRecord(kind, owner)).toBe(false);
    removeRecord(kind, other);
  }
  writeFileSync(`${folder}/.c2:eth0.17`, "{"); // half-written
  expect(isOnlyRecord(kind, owner)).toBe(true);
});

test("GC gets those that are not in its list, damaged ones too", () => {
  for (const containerId of ["a", "b", "c"])
    writeRecord(kind, { ...owner, containerId }, { of: containerId });
  writeFileSync(`${folder}/b:eth0`, '{"network":"net","cont');
  writeFileSync(`${folder}/c:eth0`, "null");
  const said: string[] = [];
  const warn = (message: string) => said.push(message);
  expect(readRecord(kind, { ...owner, containerId: "b" }, warn)).toBeUndefined();
  const stale = staleRecords(kind, "net", [{ containerID: "a", ifname: "eth0" }], warn);
  expect(stale).toEqual([
    { network: "net", containerId: "b", ifName: "eth0", data: undefined, path: `${folder}/b:eth0` },
    { network: "net", containerId: "c", ifName: "eth0", data: undefined, path: `${folder}/c:eth0` },
  ]);
  expect(said.join("\n")).toMatch(/ignoring .*b:eth0.*\n.*b:eth0.*\n.*c:eth0: not a record/);
  expect(staleRecords(kind, "net", [])).toHaveLength(3);
  expect(staleRecords(kind, "other", [])).toEqual([]);
});

test("what a killed writer left goes with the owner's record, or by itself", () => {
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${folder}/.c1:eth0`, "{");
  expect(removeRecord(kind, owner)).toBe(false);
  expect(readdirSync(`/run/tscni/${kind}`)).toEqual([]);
  mkdirSync(folder, { recursive: true });
  writeFileSync(`${folder}/.c1:eth0`, "{");
  writeRecord(kind, owner, { a: 1 });
  expect(readdirSync(folder)).toEqual(["c1:eth0"]);
});

test("what a killed writer left is no record, and goes after a minute", () => {
  mkdirSync(folder, { recursive: true });
  for (const name of [".c1:eth0.17", ".c2:eth0.18"]) writeFileSync(`${folder}/${name}`, "{");
  utimesSync(`${folder}/.c1:eth0.17`, 1, 1);
  expect(listRecords(kind, "net")).toEqual([]);
  expect(readdirSync(folder)).toEqual([".c2:eth0.18"]);
});

test("what a killed writer left goes with GC, unless it is of a living owner's", () => {
  mkdirSync(folder, { recursive: true });
  for (const name of [".c1:eth0", ".c2:eth0"]) writeFileSync(`${folder}/${name}`, "{");
  expect(staleRecords(kind, "net", [{ containerID: "c2", ifname: "eth0" }])).toEqual([]);
  expect(readdirSync(folder)).toEqual([".c2:eth0"]);
  expect(staleRecords(kind, "net", [])).toEqual([]);
  expect(readdirSync(`/run/tscni/${kind}`)).toEqual([]);
});

test("a folder that a killed writer made goes with the owner's record, or with GC", () => {
  mkdirSync(folder, { recursive: true });
  expect(removeRecord(kind, owner)).toBe(false);
  expect(readdirSync(`/run/tscni/${kind}`)).toEqual([]);
  mkdirSync(folder, { recursive: true });
  expect(staleRecords(kind, "net", [])).toEqual([]);
  expect(readdirSync(`/run/tscni/${kind}`)).toEqual([]);
});

test("a folder that can't be written is an error", () => {
  mkdirSync(`/run/tscni/${kind}`, { recursive: true });
  writeFileSync(folder, "in the way");
  expect(() => writeRecord(kind, owner, {})).toThrow(/ENOTDIR|not a directory/i);
  expect(readRecord(kind, owner)).toBeUndefined();
});
