import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stat } from "@tscni/sys";
import { expect, test } from "vitest";
import { hostState, ip, makeNamespace, runPlugin, temporaryFolder } from "./index.ts";

test("a namespace is apart from ours, and goes", () => {
  const own = stat("/proc/thread-self/ns/net").ino;
  const ns = makeNamespace();
  expect(stat(ns.path).ino).not.toBe(own);
  expect(stat("/proc/thread-self/ns/net").ino).toBe(own);
  ns.run("ip", "link", "add", "tscnisup0", "type", "bridge");
  expect(ip(ns, "link", "show", "dev", "tscnisup0")).toMatchObject([{ linkinfo: { info_kind: "bridge" } }]);
  expect(() => ip(undefined, "link", "show", "dev", "tscnisup0")).toThrow(/does not exist/);
  ns.close();
  ns.close();
  expect(() => stat(ns.path)).toThrow(/no such file/);
});

test("hostState sees what changes", () => {
  const ns = makeNamespace();
  const folder = temporaryFolder();
  const look = () => hostState({ ns, folders: [folder.path] });
  const before = look();
  expect(look()).toEqual(before);
  const changes: [string, ...string[]][] = [
    ["ip", "link", "add", "d0", "type", "bridge"],
    ["ip", "addr", "add", "10.9.8.1/24", "dev", "d0"],
    ["ip", "link", "set", "d0", "up"],
    ["ip", "route", "add", "10.7.0.0/16", "dev", "d0"],
    ["ip", "rule", "add", "from", "10.9.8.1", "lookup", "100"],
  ];
  let last = before;
  for (const change of changes) {
    ns.run(...change);
    expect(look(), change.join(" ")).not.toEqual(last);
    last = look();
  }
  mkdirSync(join(folder.path, "a"));
  writeFileSync(join(folder.path, "a/b"), "text");
  expect(look().files).toMatchObject({ [join(folder.path, "a/b")]: "text" });
  folder.remove();
  ns.close();
});

test("a process with exactly the environment given, whole output and status", async () => {
  const folder = temporaryFolder();
  const bin = join(folder.path, "plugin");
  writeFileSync(bin, '#!/bin/sh\ncat\nprintf "%s" "$CNI_COMMAND$HOME" >&2\nexit 3\n', { mode: 0o755 });
  const outcome = await runPlugin({ bin, env: { CNI_COMMAND: "ADD" }, stdin: { a: "x".repeat(1 << 20) } });
  expect(outcome).toMatchObject({ status: 3, signal: null, stderr: "ADD" });
  expect(outcome.json.a).toHaveLength(1 << 20);
  folder.remove();
});
