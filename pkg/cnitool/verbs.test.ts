import { spawn, spawnSync } from "node:child_process";
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { main } from "./index.ts";
import { containerIdOf } from "./runtime.ts";

/** A plugin that logs its calls, answers ADD with one address, and fails the verbs named in its config's "fail". */
const plugin = `#!/bin/sh
conf=$(cat)
log=$(dirname "$0")/../log
case $CNI_COMMAND in
  VERSION) echo '{"cniVersion":"1.1.0","supportedVersions":["1.0.0","1.1.0"]}'; exit ;;
esac
echo "$(basename "$0") $CNI_COMMAND $CNI_CONTAINERID $CNI_IFNAME $CNI_NETNS $CNI_ARGS" >> "$log"
echo "$conf" >> "$log.conf"
case $conf in
  *'"fail":"'$CNI_COMMAND'"'*) echo '{"code":100,"msg":"no luck","details":"today"}'; exit 1 ;;
  *'"hang":"'$CNI_COMMAND'"'*) exec sleep 60 ;;
esac
if [ "$CNI_COMMAND" = ADD ]; then
  echo '{"cniVersion":"1.1.0","interfaces":[{"name":"'$CNI_IFNAME'","sandbox":"'$CNI_NETNS'"}],"ips":[{"address":"10.9.0.2/24","interface":0}]}'
fi
`;

let dir: string;
let env: Record<string, string>;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "cnitool-"));
  for (const name of ["bin", "conf", "cache"]) mkdirSync(join(dir, name));
  for (const name of ["one", "two"]) writeFileSync(join(dir, "bin", name), plugin, { mode: 0o755 });
  conflist("net", [{ type: "one" }, { type: "two" }]);
  env = { CNI_PATH: join(dir, "bin"), NETCONFPATH: join(dir, "conf") };
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

function conflist(name: string, plugins: object[], more: object = {}): string {
  const file = join(dir, "conf", `${name}.conflist`);
  writeFileSync(file, JSON.stringify({ cniVersion: "1.1.0", name, plugins, ...more }, null, 2));
  return file;
}

/** The calls of plugins since the last time this was asked. */
function calls(): string[] {
  const log = join(dir, "log");
  const text = existsSync(log) ? readFileSync(log, "utf8") : "";
  rmSync(log, { force: true });
  return text.split("\n").filter((line) => line !== "");
}

async function cnitool(...argv: string[]) {
  const stdout: string[] = [];
  const stderr: string[] = [];
  const io = {
    stdout: (text: string) => stdout.push(text),
    stderr: (text: string) => stderr.push(text),
    cwd: dir,
  };
  const status = await main([...argv, "--cache-dir", "cache"], env, io);
  return { status, stdout: stdout.join(""), stderr: stderr.join("") };
}

const id = containerIdOf("/ns/web");
const silent = { status: 0, stdout: "", stderr: "" };

describe.skipIf(process.platform === "win32")("with plugins that are scripts", () => {
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

  describe("gc", () => {
    const ids = ["/ns/a", "/ns/b", "/ns/c"].map(containerIdOf);
    const left = async () => {
      const list = JSON.parse((await cnitool("attachments", "--json")).stdout) as { netns: string }[];
      return list.map((a) => a.netns).toSorted();
    };
    beforeEach(async () => {
      for (const name of ["a", "b", "c"]) await cnitool("add", "net", `/ns/${name}`);
      calls();
    });

    test("without a list it removes them all, as Go's does", async () => {
      expect(await cnitool("gc", "net", "/ignored")).toEqual(silent);
      expect(await left()).toEqual([]);
      const verbs = calls().map((call) => call.split(" ")[1]);
      expect(verbs.filter((verb) => verb === "DEL").length).toBe(6);
      expect(verbs.filter((verb) => verb === "GC").length).toBe(2);
    });

    test("keeps what --keep and --keep-file name", async () => {
      writeFileSync(join(dir, "live"), `# of the runtime\n${ids[1]}:eth0  # b\n\n`);
      expect(await cnitool("gc", "net", "--keep", ids[0]!, "--keep-file", "live")).toEqual(silent);
      expect(await left()).toEqual(["/ns/a", "/ns/b"]);
      const conf = readFileSync(join(dir, "log.conf"), "utf8").trim().split("\n").at(-1)!;
      expect(JSON.parse(conf)["cni.dev/valid-attachments"]).toEqual(
        [ids[0], ids[1]].map((containerID) => ({ containerID, ifname: "eth0" })),
      );
    });

    test("keeps what attachments --json printed; another interface of a container does not save it", async () => {
      writeFileSync(join(dir, "live"), (await cnitool("attachments", "--json")).stdout);
      expect(await cnitool("gc", "net", "--keep-file", "live")).toEqual(silent);
      expect(await left()).toEqual(["/ns/a", "/ns/b", "/ns/c"]);
      expect(await cnitool("gc", "net", "--keep", `${ids[0]}:net9`, "--keep", `${ids[2]}:eth0`)).toEqual(
        silent,
      );
      expect(await left()).toEqual(["/ns/c"]);
    });

    test("an empty keep file keeps nothing, and that is said", async () => {
      writeFileSync(join(dir, "live"), "# none\n");
      const { status, stderr } = await cnitool("gc", "net", "--keep-file", "live");
      expect([status, stderr]).toEqual([0, "Note: live lists nothing to keep.\n"]);
      expect(await left()).toEqual([]);
    });

    test("--dry-run only tells", async () => {
      const { status, stdout } = await cnitool("gc", "net", "--keep", ids[1]!, "--dry-run");
      expect(status).toBe(0);
      expect(stdout).toMatch(new RegExp(`delete +${ids[0]} +eth0 +/ns/a`));
      expect(stdout).toMatch(new RegExp(`keep +${ids[1]} +eth0 +/ns/b`));
      expect(stdout).toContain("2 to delete, 1 to keep.");
      expect(calls()).toEqual([]);
      expect(await left()).toEqual(["/ns/a", "/ns/b", "/ns/c"]);
    });

    test("--json tells what was done", async () => {
      const { stdout } = await cnitool("gc", "net", "--keep", ids[1]!, "--json");
      const report = JSON.parse(stdout) as { deleted: object[]; kept: object[] };
      expect(report).toMatchObject({ network: "net", dryRun: false, plugins: ["one", "two"], failed: [] });
      expect(report.deleted.length).toBe(2);
      expect(report.kept).toEqual([{ containerId: ids[1], ifName: "eth0", netns: "/ns/b" }]);
    });

    test("a failing DEL stops neither the others nor GC", async () => {
      conflist("net", [{ type: "one", fail: "DEL" }, { type: "two" }]);
      const { status, stderr } = await cnitool("gc", "net");
      expect(status).toBe(1);
      expect(stderr).toContain("no luck");
      const verbs = calls().map((call) => call.split(" ").slice(0, 2).join(" "));
      expect(verbs.filter((verb) => verb === "two DEL").length).toBe(3);
      expect(verbs).toContain("two GC");
      const report = JSON.parse((await cnitool("gc", "net", "--json")).stdout) as {
        failed: object[];
        error: object;
      };
      expect(report.failed.length).toBe(3);
      expect(report.error).toHaveProperty("code");
    });

    test.each([
      [["--keep", "a b"], "--keep: invalid characters in containerID; a b"],
      [["--keep", "a:b:c"], '--keep: "a:b:c" is not CONTAINERID or CONTAINERID:IFNAME'],
      [["--keep", "a:"], "--keep: interface name is empty"],
      [["--keep-file", "missing"], "ENOENT: no such file or directory"],
      [["--keep-file", "words"], "words:2: invalid characters in containerID; not an id"],
      [["--keep-file", "broken"], "broken: "],
      [["--keep-file", "shape"], 'shape: [0] is not an object with "containerID" and "ifname"'],
    ])("%j is refused before anything is deleted", async (flags, message) => {
      writeFileSync(join(dir, "words"), "good\nnot an id\n");
      writeFileSync(join(dir, "broken"), "[1,");
      writeFileSync(join(dir, "shape"), '[{"id":"x"}]');
      const { status, stderr } = await cnitool("gc", "net", ...flags);
      expect(status).toBe(1);
      expect(stderr.startsWith(`Error: ${message}`)).toBe(true);
      expect(calls()).toEqual([]);
      expect((await left()).length).toBe(3);
    });
  });

  describe("validate", () => {
    test("nothing wrong", async () => {
      const file = conflist("net", [{ type: "one" }]);
      expect(await cnitool("validate", file)).toEqual({ ...silent, stdout: "1 file: nothing wrong.\n" });
      expect(await cnitool("validate", "net", "--strict")).toEqual({
        ...silent,
        stdout: "1 file: nothing wrong.\n",
      });
      expect(calls()).toEqual([]);
    });

    test("tells all that is wrong, each with its place", async () => {
      const file = join(dir, "conf", "broken.conflist");
      writeFileSync(
        file,
        `{
  "cniVersion": "0.4.0",
  "name": "broken",
  "disableChek": true,
  "plugins": [
    { "type": "one", "capabilites": {} },
    { "type": "tow" },
    { "type": "two", "ipam": { "type": "../evil" }, "ipam": { "type": "one" } },
    { "ipam": [] }
  ]
}`,
      );
      const { status, stdout, stderr } = await cnitool("validate", file);
      expect([status, stderr]).toEqual([1, ""]);
      const lines = stdout.trimEnd().split("\n");
      const wants = '"one" supports 1.0.0, 1.1.0, but the network asks for 0.4.0';
      expect(lines).toEqual([
        `${file}:4:3: warning: disableChek: unknown key, read by nobody; did you mean "disableCheck"?`,
        `${file}:6:7: error: plugins[0].type: ${wants}`,
        `${file}:6:22: warning: plugins[0].capabilites: unknown key; did you mean "capabilities"?`,
        expect.stringMatching(
          /:7:7: error: plugins\[1\]\.type: failed to find plugin "tow" .*did you mean "two"\?$/,
        ),
        `${file}:8:7: error: plugins[2].type: ${wants.replace("one", "two")}`,
        `${file}:8:53: warning: plugins[2].ipam: stands here again; the last one counts`,
        `${file}:8:63: error: plugins[2].ipam.type: ${wants}`,
        `${file}:9:5: error: plugins[3].type: missing: expected the plugin's name`,
        expect.stringMatching(/:9:7: error: plugins\[3\]\.ipam: .* is not an object$/),
        "1 file: 6 errors, 3 warnings.",
      ]);
    });

    test("warnings fail only with --strict", async () => {
      const file = conflist("net", [{ type: "one" }], { vendor: 1 });
      expect((await cnitool("validate", file)).status).toBe(0);
      expect((await cnitool("validate", file, "--strict")).status).toBe(1);
    });

    test("a file that is not JSON", async () => {
      const file = join(dir, "conf", "a.conflist");
      writeFileSync(file, '{\n  "name": "a",\n}');
      const { status, stdout } = await cnitool("validate", file);
      expect(status).toBe(1);
      expect(stdout).toBe(
        `${file}:3:1: error: not JSON: expected a key in double quotes, found "}"\n1 file: 1 error, 0 warnings.\n`,
      );
      // It also ends libcni's search for any network in a file behind it.
      expect((await cnitool("validate", "net")).status).toBe(1);
    });

    test("the whole folder: names used twice, single plugins, and plugins in files beside a conflist", async () => {
      writeFileSync(join(dir, "conf", "zz.conf"), '{"cniVersion":"1.1.0","name":"net","type":"two"}');
      mkdirSync(join(dir, "conf", "net"));
      writeFileSync(join(dir, "conf", "net", "10.conf"), '{"type":"three"}');
      writeFileSync(join(dir, "conf", "net", "readme.txt"), "not read");
      const { status, stdout } = await cnitool("validate");
      expect(status).toBe(1);
      expect(stdout).toContain(
        `zz.conf:1:23: warning: name: "net" is already the network of ${join(dir, "conf", "net.conflist")}`,
      );
      expect(stdout).toContain(
        `${join(dir, "conf", "net", "10.conf")}:1:2: error: type: failed to find plugin "three"`,
      );
      expect(stdout).toContain("3 files: 1 error, 1 warning.");
    });

    test("a file that cannot be read hides no other", async () => {
      mkdirSync(join(dir, "some"));
      symlinkSync("/no/such/file", join(dir, "some", "a.conflist"));
      writeFileSync(join(dir, "some", "b.conflist"), '{"cniVersion":"1.1.0","plugins":[{"type":"one"}]}');
      const { status, stdout } = await cnitool("validate", "some/");
      expect(status).toBe(1);
      expect(stdout).toContain("a.conflist: error: cannot be read: ENOENT");
      expect(stdout).toContain("b.conflist:1:1: error: name: missing");
      expect(stdout).toContain("2 files: 2 errors");
    });

    test("without CNI_PATH no plugin is looked for, and that is said", async () => {
      delete env.CNI_PATH;
      expect(await cnitool("validate", "net")).toEqual({
        status: 0,
        stdout: "1 file: nothing wrong.\n",
        stderr: "Note: CNI_PATH is not set, so no plugin was looked for.\n",
      });
    });

    test("--json", async () => {
      conflist("net", [{ type: "one" }, { type: "gone" }]);
      const { status, stdout } = await cnitool("validate", "net", "--json");
      expect(status).toBe(1);
      expect(JSON.parse(stdout)).toMatchObject({
        valid: false,
        errors: 1,
        warnings: 0,
        pluginsLookedUp: true,
        files: [{ network: "net", cniVersion: "1.1.0", plugins: ["one", "gone"], pluginFiles: [] }],
        problems: [
          { path: "plugins[1].type", level: "error", line: expect.any(Number), column: expect.any(Number) },
        ],
      });
    });

    test("what a file holds cannot steer the terminal", async () => {
      const file = conflist("net", [{ type: "one" }], { "a\u001b[31m\nb": 1 });
      const { stdout } = await cnitool("validate", file);
      expect(stdout).toContain("a\\u001b[31m\\u000ab");
      expect(stdout).not.toContain("\u001b");
    });

    test("a network or folder that is not there", async () => {
      expect((await cnitool("validate", "nonet")).stderr).toContain(
        'no net configuration with name "nonet" in',
      );
      expect((await cnitool("validate", "--conf-dir", join(dir, "empty"))).stderr).toContain(
        "no net configurations found in",
      );
      expect((await cnitool("validate", "./no.conflist")).stdout).toContain("error: cannot be read: ENOENT");
    });
  });

  test("version of plugins; one that is missing does not hide the others", async () => {
    const { status, stdout, stderr } = await cnitool("version", "one", "gone");
    expect(status).toBe(1);
    expect(stdout).toBe("PLUGIN  SUPPORTS\none     1.0.0 1.1.0\n");
    expect(stderr).toContain('Error: gone: failed to find plugin "gone"');
  });

  test("completion knows commands, flags, networks and containers", async () => {
    await cnitool("add", "net", "/ns/web");
    const words = async (...typed: string[]) => {
      const stdout: string[] = [];
      const io = { stdout: (text: string) => stdout.push(text), stderr: () => {}, cwd: dir };
      await main(["__completeNoDesc", ...typed], env, io);
      return stdout.join("").trim().split("\n");
    };
    expect(await words("a")).toEqual(["add", "attachments", ":4"]);
    expect(await words("add", "")).toEqual(["net", ":4"]);
    expect(await words("add", "net", "")).toEqual([":0"]);
    expect(await words("gc", "--dr")).toEqual(["--dry-run", ":4"]);
    expect(await words("completion", "")).toEqual(["bash", "fish", "powershell", "zsh", ":4"]);
    expect(await words("help", "gc", "")).toEqual([":4"]);
    expect(await words("version", "o")).toEqual(["one", ":4"]);
    expect(await words("gc", "net", "--cache-dir", "cache", "--keep", "")).toEqual([id, ":4"]);
    expect(await words("bogus", "")).toEqual([":4"]);
  });

  test("bash completes with the script", () => {
    const tool = toolCommand();
    writeFileSync(
      join(dir, "bin", "cnitool"),
      `#!/bin/sh\nexec ${tool.map((w) => `'${w}'`).join(" ")} "$@"\n`,
      { mode: 0o755 },
    );
    const script = `source <(cnitool completion bash)
      COMP_WORDS=(cnitool validate n) COMP_CWORD=2 COMPREPLY=()
      compopt() { :; }
      _cnitool; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const ran = spawnSync("bash", ["-c", script], {
      env: { ...process.env, ...env, PATH: `${join(dir, "bin")}:${process.env.PATH}` },
      encoding: "utf8",
    });
    expect(ran.stdout).toBe("net\n");
  });

  test("an interrupt stops the plugin, and what it began is on record", async () => {
    conflist("slow", [{ type: "one", hang: "ADD" }]);
    const [program, ...args] = toolCommand();
    const child = spawn(program!, [...args, "add", "slow", "/ns/web", "--cache-dir", join(dir, "cache")], {
      env: { ...process.env, ...env },
      stdio: ["ignore", "ignore", "pipe"],
    });
    const stderr: Buffer[] = [];
    child.stderr.on("data", (data: Buffer) => stderr.push(data));
    await vi.waitUntil(() => existsSync(join(dir, "log")), { timeout: 20_000 });
    child.kill("SIGINT");
    const status = await new Promise((resolve) => child.on("close", resolve));
    expect(status).toBe(130);
    expect(Buffer.concat(stderr).toString()).toContain("stopped at the caller's request");
    expect((await cnitool("attachments")).stdout).toContain("ADD failed at one");
  });

  test("the program itself: exit status, stdout, stderr, and $PWD below a symbolic link", () => {
    const run = (...args: string[]) =>
      spawnSync(toolCommand()[0]!, [...toolCommand().slice(1), ...args, "--cache-dir", join(dir, "cache")], {
        env: { ...process.env, ...env, PWD: "/proc/self/cwd" },
        cwd: dir,
        encoding: "utf8",
      });
    const added = run("add", "net", "ns");
    expect(added).toMatchObject({ status: 0, stderr: "" });
    expect(added.stdout.endsWith("}")).toBe(true);
    const where = existsSync("/proc/self/cwd") ? "/proc/self/cwd/ns" : join(dir, "ns");
    expect(calls()[0]).toContain(containerIdOf(where));
    expect(run("add", "nonet", "ns")).toMatchObject({ status: 1, stdout: "" });
    const full = existsSync("/dev/full") ? openSync("/dev/full", "w") : undefined;
    if (full === undefined) return;
    const [program, ...args] = toolCommand();
    const lost = spawnSync(program!, [...args, "version"], {
      stdio: ["ignore", full, "pipe"],
      encoding: "utf8",
    });
    closeSync(full);
    expect(lost).toMatchObject({ status: 1, stderr: expect.stringContaining("ENOSPC") });
  });
});

/** Under Bun the source runs, under Node what the build made of it. */
function toolCommand(): string[] {
  const file = process.versions.bun ? "bin.ts" : "dist/bin.js";
  return [process.execPath, fileURLToPath(new URL(file, import.meta.url))];
}
