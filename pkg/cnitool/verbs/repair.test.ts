import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { calls, cnitool, conflist, dir, env, id, onWindows, silent, withScriptPlugins } from "./fixture.ts";

/** A plugin with one rule, a file; CHECK fails without it, and puts it back when asked to. */
const withRule = `#!/bin/sh
conf=$(cat)
rule=$(dirname "$0")/../rule-$CNI_CONTAINERID-$CNI_IFNAME
echo "$CNI_COMMAND" >> "$(dirname "$0")/../log"
echo "$conf" >> "$(dirname "$0")/../log.conf"
case $CNI_COMMAND in
  ADD) touch "$rule"; echo '{"cniVersion":"1.1.0","ips":[{"address":"10.9.0.2/24"}]}' ;;
  CHECK)
    case $conf in *'"tscni/repair":true'*) touch "$rule" ;; esac
    [ -e "$rule" ] || { echo '{"code":100,"msg":"no rule"}'; exit 1; } ;;
esac
`;

describe.skipIf(onWindows)("repair", () => {
  withScriptPlugins();
  const lose = (name: string) => writeFileSync(join(dir, "bin", name), withRule, { mode: 0o755 });

  test("CHECKs, asks the plugin that fails to repair, and says what was missing", async () => {
    conflist("net", [{ type: "ruled", capabilities: { mac: true } }, { type: "two" }]);
    lose("ruled");
    env.CAP_ARGS = '{"mac":"02:00:00:00:00:01"}';
    await cnitool("add", "net", "/ns/web");
    delete env.CAP_ARGS;
    expect(await cnitool("repair", "net", "/ns/web")).toEqual(silent);
    expect(calls().slice(2)).toEqual(["CHECK", `two CHECK ${id} eth0 /ns/web `]);

    rmSync(join(dir, `rule-${id}-eth0`));
    rmSync(join(dir, "log.conf"));
    expect((await cnitool("check", "net", "/ns/web")).stderr).toContain("no rule");
    calls();
    expect(await cnitool("repair", "net", "/ns/web")).toEqual({
      ...silent,
      stdout: `${id} eth0: ruled repaired: no rule\n`,
    });
    expect(calls()).toEqual(["CHECK", "CHECK", `two CHECK ${id} eth0 /ns/web `]);
    const asked = readFileSync(join(dir, "log.conf"), "utf8").trim().split("\n");
    const ruled = asked.map((line) => JSON.parse(line)).filter((conf) => conf.type === "ruled");
    expect(ruled.map((conf) => conf["tscni/repair"])).toEqual([undefined, undefined, true]);
    for (const conf of ruled)
      expect(conf).toMatchObject({
        runtimeConfig: { mac: "02:00:00:00:00:01" },
        prevResult: { ips: [{ address: "10.9.0.2/24" }] },
      });
    expect(await cnitool("check", "net", "/ns/web")).toEqual(silent);
  });

  test("a plugin that can't repair is reported, the others are repaired all the same, and nothing but CHECK is run", async () => {
    conflist("net", [{ type: "one", fail: "CHECK" }, { type: "ruled" }]);
    lose("ruled");
    await cnitool("add", "net", "/ns/web");
    rmSync(join(dir, `rule-${id}-eth0`));
    calls();
    const { status, stdout, stderr } = await cnitool("repair", "net", "/ns/web");
    expect([status, stdout]).toEqual([1, `${id} eth0: ruled repaired: no rule\n`]);
    expect(stderr).toContain(`Error: ${id} eth0: plugin type="one" could not be repaired: no luck`);
    expect(calls()).toEqual([
      `one CHECK ${id} eth0 /ns/web `,
      `one CHECK ${id} eth0 /ns/web `,
      "CHECK",
      "CHECK",
    ]);
    const json = JSON.parse((await cnitool("repair", "net", "/ns/web", "--json")).stdout);
    expect(json).toMatchObject([
      {
        containerId: id,
        plugins: [
          { type: "one", state: "broken" },
          { type: "ruled", state: "good" },
        ],
        error: { code: 100 },
      },
    ]);
  });

  test("without a namespace, all that is attached to the network", async () => {
    conflist("net", [{ type: "ruled" }]);
    conflist("other", [{ type: "one", fail: "CHECK" }]);
    lose("ruled");
    for (const netns of ["/ns/a", "/ns/b"]) await cnitool("add", "net", netns);
    await cnitool("add", "other", "/ns/a");
    for (const name of readdirSync(dir).filter((n) => n.startsWith("rule-"))) rmSync(join(dir, name));
    const { status, stdout } = await cnitool("repair", "net");
    expect(status).toBe(0);
    expect(stdout.trim().split("\n")).toHaveLength(2);
    expect(await cnitool("repair", "net")).toEqual(silent);
  });

  test("of what is not attached, was never finished, or has no CHECK, there is no repair", async () => {
    const failure = async (network: string) => {
      const { status, stderr } = await cnitool("repair", network, "/ns/web");
      expect(calls()).toEqual([]);
      expect(status).toBe(1);
      return stderr;
    };
    expect(await failure("net")).toContain(`nothing is remembered of interface "eth0" of ${id}`);
    conflist("bad", [{ type: "one" }, { type: "two", fail: "ADD" }]);
    await cnitool("add", "bad", "/ns/web");
    calls();
    expect(await failure("bad")).toMatch(/was never finished\n.*what to do: DEL, then ADD/);
    conflist("old", [{ type: "one" }], { cniVersion: "0.3.1" });
    expect(await failure("old")).toContain("does not support the CHECK command");
    conflist("off", [{ type: "one" }], { disableCheck: true });
    expect(await failure("off")).toContain("says disableCheck");
  });

  test("an attachment whose DEL failed is not brought back to life", async () => {
    conflist("net", [{ type: "one", fail: "DEL" }]);
    await cnitool("add", "net", "/ns/web");
    await cnitool("del", "net", "/ns/web");
    calls();
    expect((await cnitool("repair", "net", "/ns/web")).stderr).toContain("the DEL of interface");
    expect(calls()).toEqual([]);
  });
});
