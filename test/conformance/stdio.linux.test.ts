import { closeSync, constants, openSync } from "node:fs";
import { join } from "node:path";
import { envOf, ip, makeNode, run, type TestNode } from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { call, expectNoTrace, expectSilence, goodConf, type PluginName } from "./call.ts";

let node: TestNode;
beforeEach(() => {
  node = makeNode();
});
afterEach(() => node.close());

/** Runs ADD with redirections, which take a shell; the config is on stdin and stdout is read unless redirected. */
async function addWith(type: PluginName, netns: string, redirect: string, stdout: "pipe" | number = "pipe") {
  const child = Bun.spawn(["sh", "-c", `exec "$@" ${redirect}`, "sh", ...node.command(type)], {
    env: { PATH: process.env.PATH!, ...(envOf("ADD", { netns }) as Record<string, string>) },
    stdin: new TextEncoder().encode(JSON.stringify(goodConf(type, node))),
    stdout,
    stderr: "pipe",
    timeout: 20_000,
  });
  const [out, err] = await Promise.all([
    child.stdout instanceof ReadableStream ? new Response(child.stdout).text() : "",
    new Response(child.stderr).text(),
    child.exited,
  ]);
  return { status: child.exitCode, signal: child.signalCode, stdout: out, stderr: err };
}

/** A pipe without a reader: writing to it fails. */
function brokenPipe(): number {
  const path = join(node.dataDir, "pipe");
  run("mkfifo", path);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writer = openSync(path, constants.O_WRONLY);
  closeSync(reader);
  run("rm", path);
  return writer;
}

describe.each(["loopback", "bridge"] as PluginName[])("%s", (type) => {
  test("no stdin: no config", async () => {
    const { status, stdout } = await addWith(type, node.container().path, "<&-");
    expect(status).toBe(1);
    expect([5, 6]).toContain(JSON.parse(stdout).code);
  });

  test("stdin that cannot be read", async () => {
    const { status, stdout } = await addWith(type, node.container().path, "</");
    expect(status).toBe(1);
    expect(JSON.parse(stdout)).toMatchObject({
      code: 5,
      msg: "error reading from stdin: read fd 0: is a directory",
    });
  });

  test("no stderr is no matter", async () => {
    const ns = node.container();
    expect(await addWith(type, ns.path, "2>&-")).toMatchObject({ status: 0 });
    expectSilence(await call(node, type, "DEL", goodConf(type, node), { netns: ns }), "DEL");
  });

  test("no stdout is where the result goes, as with the Go plugins; DEL takes all back", async () => {
    const ns = node.container();
    await expectNoTrace(
      node,
      async () => {
        expect(await addWith(type, ns.path, ">&-")).toMatchObject({ status: 0, signal: null });
        expectSilence(await call(node, type, "DEL", goodConf(type, node), { netns: ns }), "DEL");
      },
      { bridge: false },
    );
  });

  test.each([
    ["no space left on device", () => openSync("/dev/full", "w")],
    ["broken pipe", brokenPipe],
  ])("a result that nobody gets is taken back, and stderr hears of it: %s", async (reason, open) => {
    const ns = node.container();
    await expectNoTrace(
      node,
      async () => {
        const stdout = open();
        const { status, signal, stderr } = await addWith(type, ns.path, "", stdout);
        closeSync(stdout);
        expect({ status, signal }).toEqual({ status: 1, signal: null });
        expect(JSON.parse(stderr), "without a word about cleaning up").toEqual({
          cniVersion: "1.1.0",
          code: 5,
          msg: `error writing the result to stdout: write fd 1: ${reason}`,
        });
      },
      { bridge: false },
    );
    expect(ip(ns, "link").map(({ ifname, flags }) => [ifname, flags.includes("UP")])).toEqual([
      ["lo", false],
    ]);
  });
});
