import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { containerIdOf } from "../runtime.ts";
import { calls, cnitool, conflist, dir, env, id, onWindows, silent, withScriptPlugins } from "./fixture.ts";

describe.skipIf(onWindows)("add, check, del, status and attachments", () => {
  withScriptPlugins();

  test("add prints the result, check, status and del are silent, and del leaves no cache", async () => {
    const added = await cnitool("add", "net", "/ns/web");
    expect(added).toMatchObject({ status: 0, stderr: "" });
    expect(added.stdout).toBe(`{
    "cniVersion": "1.1.0",
    "interfaces": [
        {
            "name": "eth0",
            "sandbox": "/ns/web"
        }
    ],
    "ips": [
        {
            "address": "10.9.0.2/24",
            "interface": 0
        }
    ]
}`);
    expect(readdirSync(join(dir, "cache", "results"))).toEqual([`net-${id}-eth0`]);
    expect(await cnitool("check", "net", "/ns/web")).toEqual(silent);
    expect(await cnitool("status", "net", "/ns/web")).toEqual(silent);
    expect(await cnitool("status", "net")).toEqual(silent);
    expect(await cnitool("del", "net", "/ns/web")).toEqual(silent);
    expect(await cnitool("del", "net", "/ns/web")).toEqual(silent);
    expect(readdirSync(join(dir, "cache", "results"))).toEqual([]);
    const verbs = calls().map((call) => call.split(" ").slice(0, 2).join(" "));
    expect(verbs).toEqual([
      ...[
        "one ADD",
        "two ADD",
        "one CHECK",
        "two CHECK",
        "one STATUS",
        "two STATUS",
        "one STATUS",
        "two STATUS",
      ],
      ...["two DEL", "one DEL", "two DEL", "one DEL"],
    ]);
  });

  test("a relative namespace counts from the working directory, the interface comes from flag, variable or default", async () => {
    const netns = join(dir, "ns");
    await cnitool("add", "net", "ns");
    env.CNI_IFNAME = "net7";
    await cnitool("add", "net", "./x/../ns");
    await cnitool("-i", "net8", "add", "net", netns);
    const own = containerIdOf(netns);
    expect(calls().filter((call) => call.startsWith("one"))).toEqual(
      ["eth0", "net7", "net8"].map((ifName) => `one ADD ${own} ${ifName} ${netns} `),
    );
  });

  test("CNI_ARGS and CAP_ARGS reach the plugins", async () => {
    conflist("caps", [{ type: "one", capabilities: { mac: true } }]);
    env.CNI_ARGS = "IgnoreUnknown=1;K=V";
    env.CAP_ARGS = '{"mac":"02:00:00:00:00:01","other":1}';
    expect((await cnitool("add", "caps", "/ns/web")).status).toBe(0);
    expect(calls()[0]).toBe(`one ADD ${id} eth0 /ns/web IgnoreUnknown=1;K=V`);
    const conf = JSON.parse(readFileSync(join(dir, "log.conf"), "utf8")) as { runtimeConfig: unknown };
    expect(conf.runtimeConfig).toEqual({ mac: "02:00:00:00:00:01" });
  });

  test("a plugin's failure: the message in Go's words first and last, the usage between", async () => {
    conflist("bad", [{ type: "one" }, { type: "two", fail: "ADD" }]);
    const { status, stdout, stderr } = await cnitool("add", "bad", "/ns/web");
    expect([status, stdout]).toEqual([1, ""]);
    const message = 'plugin type="two" failed (add): no luck; today';
    const lines = stderr.split("\n");
    expect(lines[0]).toBe(`Error: ${message}`);
    expect(lines[1]).toMatch(/^ {2}two ADD for network "bad" failed after \d+ ms: exit status 1$/);
    expect(lines[2]).toBe("Usage:");
    expect(lines.slice(-3)).toEqual(["", message, ""]);
    expect(calls().length).toBe(2);
  });

  test("a network's name that is almost right", async () => {
    const { stderr } = await cnitool("status", "nett");
    const message = `no net configuration with name "nett" in ${join(dir, "conf")}`;
    expect(stderr.startsWith(`Error: ${message}\n  did you mean "net"?\nUsage:\n`)).toBe(true);
  });

  test("--rollback takes back what an ADD did before it failed", async () => {
    conflist("bad", [{ type: "one" }, { type: "two", fail: "ADD" }]);
    expect((await cnitool("add", "bad", "/ns/web", "--rollback")).status).toBe(1);
    const verbs = calls().map((call) => call.split(" ").slice(0, 2).join(" "));
    expect(verbs.slice(0, 2)).toEqual(["one ADD", "two ADD"]);
    expect(verbs.slice(2)).toContain("one DEL");
    expect((await cnitool("attachments", "--json")).stdout).toBe("[]\n");
  });

  test("--timeout ends a plugin that hangs", async () => {
    conflist("slow", [{ type: "one", hang: "ADD" }]);
    const started = performance.now();
    const { status, stderr } = await cnitool("add", "slow", "/ns/web", "--timeout", "300ms");
    expect(performance.now() - started).toBeLessThan(20_000);
    expect(status).toBe(1);
    expect(stderr.split("\n")[0]).toContain('plugin type="one" failed (add):');
  });

  test("--json: one value for success, the error object for failure", async () => {
    expect(JSON.parse((await cnitool("add", "net", "/ns/web", "--json")).stdout)).toHaveProperty("ips");
    const attachment = { network: "net", containerId: id, ifName: "eth0", netns: "/ns/web" };
    expect(JSON.parse((await cnitool("check", "net", "/ns/web", "--json")).stdout)).toEqual({
      ...attachment,
      ok: true,
    });
    expect(JSON.parse((await cnitool("del", "net", "/ns/web", "--json")).stdout)).toEqual({
      ...attachment,
      deleted: true,
    });
    expect(JSON.parse((await cnitool("status", "net", "--json")).stdout)).toEqual({
      network: "net",
      ready: true,
    });
    conflist("bad", [{ type: "one", fail: "STATUS" }]);
    const failed = await cnitool("status", "bad", "--json");
    expect(failed.status).toBe(1);
    expect(JSON.parse(failed.stdout)).toMatchObject({ code: 100, msg: expect.stringContaining("no luck") });
  });

  test("attachments as a table and as JSON, of all networks or one", async () => {
    conflist("other", [{ type: "one" }]);
    await cnitool("add", "net", "/ns/web");
    await cnitool("add", "other", "/ns/db", "-i", "net1");
    const { stdout } = await cnitool("attachments");
    expect(stdout).toBe(
      [
        "NETWORK  CONTAINER                     IFNAME  ADDRESSES    NETNS    STATE",
        `net      ${id}  eth0    10.9.0.2/24  /ns/web  attached`,
        `other    ${containerIdOf("/ns/db")}  net1    10.9.0.2/24  /ns/db   attached`,
        "",
      ].join("\n"),
    );
    const json = JSON.parse((await cnitool("attachments", "other", "--json")).stdout) as object[];
    expect(json).toEqual([
      expect.objectContaining({
        network: "other",
        containerId: containerIdOf("/ns/db"),
        ifName: "net1",
        netns: "/ns/db",
        addresses: ["10.9.0.2/24"],
        failed: null,
      }),
    ]);
    expect(await cnitool("attachments", "nothing")).toEqual({
      status: 0,
      stdout: "",
      stderr: "Nothing is attached to nothing.\n",
    });
  });

  test("an ADD that failed in the middle is listed as such, and del finishes it", async () => {
    conflist("bad", [{ type: "one" }, { type: "two", fail: "ADD" }]);
    await cnitool("add", "bad", "/ns/web");
    expect((await cnitool("attachments")).stdout).toContain("ADD failed at two");
    expect((await cnitool("del", "bad", "/ns/web")).status).toBe(0);
    expect((await cnitool("attachments", "--json")).stdout).toBe("[]\n");
  });

  test("del --cached does without the network's config", async () => {
    await cnitool("add", "net", "/ns/web", "-i", "net1");
    rmSync(join(dir, "conf", "net.conflist"));
    calls();
    expect((await cnitool("del", "net", "/ns/web", "-i", "net1")).status).toBe(1);
    expect((await cnitool("del", "--cached", "net", "/ns/web")).stderr).toContain(
      `Error: nothing is remembered of interface "eth0" of ${id} on network "net"`,
    );
    expect(await cnitool("del", "--cached", "net", "/ns/web", "-i", "net1")).toEqual(silent);
    expect(calls()).toEqual([`two DEL ${id} net1 /ns/web `, `one DEL ${id} net1 /ns/web `]);
    expect((await cnitool("attachments", "--json")).stdout).toBe("[]\n");
  });
});
