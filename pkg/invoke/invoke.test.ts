import {
  chmodSync,
  closeSync,
  copyFileSync,
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
import { CniError } from "@tscni/types";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { findPlugin, hintOf, invokePlugin, type PluginCall, PluginError, pluginVersions } from "./index.ts";

let dir = "";
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "tscni-invoke-"));
});
afterAll(() => rmSync(dir, { recursive: true }));

let count = 0;
/** A plugin as a shell script. */
function plugin(body: string, mode = 0o755): string {
  const file = join(dir, `plugin${count++}`);
  writeFileSync(file, `#!/bin/sh\n${body}\n`, { mode });
  return file;
}

const call: PluginCall = {
  command: "ADD",
  containerId: "c1",
  netns: "/ns",
  ifName: "eth0",
  args: [
    ["IgnoreUnknown", "1"],
    ["K", "V"],
  ],
  path: ["/a", "/b"],
};

async function failureOf(promise: Promise<unknown>): Promise<PluginError> {
  const error = await promise.then(
    () => undefined,
    (e: unknown) => e,
  );
  expect(error).toBeInstanceOf(PluginError);
  return error as PluginError;
}

describe("findPlugin", () => {
  test("takes the first regular file, through links, executable or not", () => {
    mkdirSync(join(dir, "a", "bridge"), { recursive: true });
    mkdirSync(join(dir, "b"));
    writeFileSync(join(dir, "real"), "", { mode: 0o600 });
    symlinkSync(join(dir, "real"), join(dir, "b", "bridge"));
    expect(findPlugin("bridge", ["/nowhere", join(dir, "a"), join(dir, "b")])).toBe(join(dir, "b", "bridge"));
  });

  test("a relative folder is one of the working directory, an empty entry is not", () => {
    const here = process.cwd();
    const [name = ""] = readdirSync(here, { withFileTypes: true })
      .filter((e) => e.isFile())
      .map((e) => e.name);
    expect(findPlugin(name, ["", "."])).toBe(join(here, name));
    expect(() => findPlugin(name, ["", ""])).toThrow(`failed to find plugin "${name}"`);
  });

  test.each([
    ["", ["/p"], "no plugin name provided"],
    ["../bridge", ["/p"], "invalid plugin name: ../bridge"],
    ["bridge", [], "no paths provided"],
    ["bridge", ["/p1", "/p2"], 'failed to find plugin "bridge" in path [/p1 /p2]'],
    ["..", ["/tmp"], 'failed to find plugin ".." in path [/tmp]'],
    ["a\0b", ["/tmp"], 'failed to find plugin "a\\u0000b" in path [/tmp]'],
  ])("%j in %j", (type, paths, msg) => {
    expect(() => findPlugin(type, paths)).toThrow(expect.objectContaining({ msg, code: 999 }));
  });
});

describe.skipIf(process.platform === "win32")("invokePlugin", () => {
  test("gives the variables beside the inherited ones, and stdin", async () => {
    process.env.TSCNI_TEST = "inherited";
    process.env.CNI_IFNAME = "old";
    try {
      const file = plugin("cat; echo; env | grep -e ^CNI_ -e ^TSCNI_TEST= | sort; echo note >&2");
      const notes: string[] = [];
      const out = await invokePlugin(file, call, '{"name":"n"}', { log: (text) => notes.push(text) });
      expect(out.split("\n")).toEqual([
        '{"name":"n"}',
        "CNI_ARGS=IgnoreUnknown=1;K=V",
        "CNI_COMMAND=ADD",
        "CNI_CONTAINERID=c1",
        "CNI_IFNAME=eth0",
        "CNI_NETNS=/ns",
        "CNI_PATH=/a:/b",
        "TSCNI_TEST=inherited",
        "",
      ]);
      expect(notes).toEqual(["note\n"]);
    } finally {
      delete process.env.TSCNI_TEST;
      delete process.env.CNI_IFNAME;
    }
  });

  test("the plugin's own error comes through, with what is known about the run", async () => {
    const file = plugin(
      `echo one >&2; echo two >&2; echo '{"cniVersion":"1.0.0","Code":11,"msg":"busy","details":"later"}'; exit 1`,
    );
    const error = await failureOf(invokePlugin(file, call, "", { network: "net1" }));
    expect(error.code).toBe(11);
    expect(error.msg).toBe("busy");
    expect(error.details).toMatch(
      /^later\nplugin\d+ ADD for network "net1" failed after \d+ ms: exit status 1\nstderr: one\ntwo$/,
    );
    expect(error.facts).toMatchObject({
      plugin: file,
      verb: "ADD",
      network: "net1",
      ending: "exit status 1",
    });
  });

  // The messages are those of the Go library's pkg/invoke/raw_exec.go.
  test.each([
    ["exit 3", 0, "netplugin failed with no error message: exit status 3"],
    ["echo 'it broke' >&2; exit 1", 0, 'netplugin failed: "it broke\\n": exit status 1'],
    ["kill -KILL $$", 0, "netplugin failed with no error message: signal: killed"],
    ["echo half >&2; kill -SEGV $$", 0, 'netplugin failed: "half\\n": signal: segmentation fault'],
    ["echo oops; exit 1", 0, /^netplugin failed but error parsing its diagnostic message "oops\\n": ./],
    ["echo '[1]'; exit 1", 0, /^netplugin failed but error parsing its diagnostic message "\[1\]\\n": ./],
    [`echo '{"code":"7"}'; exit 1`, 0, /^netplugin failed but error parsing its diagnostic message ./],
    ["echo '{}'; exit 1", 0, "netplugin failed with no error message: exit status 1"],
    [`echo '{"code":7,"msg":"bad"}'; exit 1`, 7, "bad"],
  ])("%s", async (body, code, msg) => {
    const error = await failureOf(invokePlugin(plugin(body), call, ""));
    expect(error.code).toBe(code);
    if (msg instanceof RegExp) expect(error.msg).toMatch(msg);
    else expect(error.msg).toBe(msg);
  });

  test("a plugin that hangs is killed at its time limit, and the error says so", async () => {
    const error = await failureOf(
      invokePlugin(plugin("echo step 1 >&2; sleep 60"), call, "", { timeoutMs: 300, network: "n" }),
    );
    expect(error.msg).toBe('netplugin failed: "step 1\\n": signal: killed');
    expect(error.details).toMatch(
      /plugin\d+ ADD for network "n" failed after \d+ ms: signal: killed, stopped at its time limit of 300 ms/,
    );
    expect(error.facts).toMatchObject({ signal: "SIGKILL", hint: expect.stringContaining("hangs") });
  });

  test("an abort kills the plugin, and the error says so", async () => {
    const error = await failureOf(
      invokePlugin(plugin("sleep 60"), call, "", { signal: AbortSignal.timeout(200) }),
    );
    expect(error.details).toContain("stopped at the caller's request");
  });

  test("a plugin that someone else killed", async () => {
    const error = await failureOf(invokePlugin(plugin("kill -KILL $$"), call, ""));
    expect(error.facts).toMatchObject({
      ending: "signal: killed",
      hint: expect.stringContaining("OOM killer"),
    });
  });

  test("a plugin that is not executable", async () => {
    const file = plugin("exit 0", 0o644);
    const error = await failureOf(invokePlugin(file, call, ""));
    expect(error.msg).toBe(`netplugin failed with no error message: fork/exec ${file}: permission denied`);
    expect(error.facts.hint).toContain("chmod 755");
  });

  test("a script whose interpreter is missing", async () => {
    const file = join(dir, "interp");
    writeFileSync(file, "#!/nowhere/sh\n", { mode: 0o755 });
    const error = await failureOf(invokePlugin(file, call, ""));
    expect(error.msg).toContain(`fork/exec ${file}: no such file or directory`);
    expect(error.facts.hint).toContain("interpreter");
  });

  test.runIf(process.platform === "linux")("a program for another machine", async () => {
    const file = join(dir, "foreign");
    const elf = readFileSync("/bin/true");
    elf.writeUInt16LE(process.arch === "s390x" ? 62 : 22, 18);
    writeFileSync(file, elf, { mode: 0o755 });
    const error = await failureOf(invokePlugin(file, call, ""));
    expect(error.msg).toBe(`netplugin failed with no error message: fork/exec ${file}: exec format error`);
    expect(error.facts.hint).toContain("architecture");
  });

  describe.runIf(process.platform === "linux")("text file busy", () => {
    test("is retried until the installer is done", async () => {
      const file = plugin("echo '{}'");
      const fd = openSync(file, "r+");
      setTimeout(() => closeSync(fd), 150);
      expect(await invokePlugin(file, call, "", { busyDelayMs: 50 })).toBe("{}\n");
    });

    test("ends after six runs with an error that names the installer", async () => {
      const file = plugin("echo '{}'");
      const fd = openSync(file, "r+");
      try {
        const begin = performance.now();
        const error = await failureOf(invokePlugin(file, call, "", { busyDelayMs: 40 }));
        expect(performance.now() - begin).toBeGreaterThan(5 * 40 - 10);
        expect(error).toMatchObject({
          code: 11,
          msg: `text file busy: ${file} is being written, it could not be run in 6 tries`,
        });
        expect(error.facts.hint).toContain("installer");
      } finally {
        closeSync(fd);
      }
    });

    test("stops waiting when the caller does", async () => {
      const file = plugin("echo '{}'");
      const fd = openSync(file, "r+");
      try {
        const options = { busyDelayMs: 20_000, signal: AbortSignal.timeout(100) };
        const error = await failureOf(invokePlugin(file, call, "", options));
        expect(error.details).toContain("stopped at the caller's request");
        expect(error.facts.durationMs).toBeLessThan(5000);
      } finally {
        closeSync(fd);
      }
    });
  });
});

describe.skipIf(process.platform === "win32")("pluginVersions", () => {
  const answer = (text: string, exit = 0) => plugin(`cat > /dev/null; echo '${text}'; exit ${exit}`);

  test.each([
    ['{"cniVersion":"1.1.0","supportedVersions":["0.4.0","1.0.0"]}', ["0.4.0", "1.0.0"]],
    ['{"CNIVersion":"0.2.0"}', ["0.1.0", "0.2.0"]],
  ])("%s", async (text, supported) => {
    expect((await pluginVersions(answer(text))).supportedVersions).toEqual(supported);
  });

  test("a plugin from before VERSION supports 0.1.0", async () => {
    const file = answer('{"code":4,"msg":"unknown CNI_COMMAND: VERSION"}', 1);
    expect((await pluginVersions(file)).supportedVersions).toEqual(["0.1.0"]);
  });

  test("sends the newest version and the dummies", async () => {
    const log = join(dir, "asked");
    const file = plugin(
      `{ cat; echo; echo $CNI_COMMAND,$CNI_NETNS,$CNI_IFNAME,$CNI_PATH; } > ${log}; echo '{"cniVersion":"0.2.0"}'`,
    );
    await pluginVersions(file);
    expect(readFileSync(log, "utf8")).toBe('{"cniVersion":"1.1.0"}\nVERSION,dummy,dummy,dummy\n');
  });

  test.each([
    ['{"supportedVersions":["1.0.0"]}', "decoding version info: missing field cniVersion"],
    ['{"cniVersion":"1.0.0"}', "decoding version info: missing field supportedVersions"],
    [
      '{"cniVersion":"1.0.0","supportedVersions":[1]}',
      "decoding version info: supportedVersions is not a list of strings",
    ],
    ["", "failed to unmarshal raw result: "],
  ])("refuses %j", async (text, msg) => {
    const error = await pluginVersions(answer(text)).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(CniError);
    expect((error as CniError).msg).toContain(msg);
  });

  test.runIf(process.platform === "linux")("a Go plugin", async ({ skip }) => {
    const file = join(dir, "loopback");
    try {
      copyFileSync("/tmp/gobin/loopback", file);
    } catch {
      skip("no Go plugins here");
    }
    chmodSync(file, 0o755);
    expect(await pluginVersions(file)).toEqual({
      cniVersion: "1.1.0",
      supportedVersions: ["0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"],
    });
  });
});

test.each([
  ['failed to find plugin "x" in path [/opt]', "CNI_PATH"],
  ['"cni0" already has an IP address different from 10.1.0.1/16', "forceAddress"],
  ["failed to allocate for range 0: no IP addresses available in range set: 10.1.0.1-10.1.0.254", "GC"],
  ["open /run/flannel/subnet.env: no such file or directory", "flannel"],
  ["incompatible CNI versions; config is", "cniVersion"],
  ['failed to open netns "/var/run/netns/x": no such file or directory', "namespace"],
])("a hint for %s", (text, word) => {
  expect(hintOf(text)).toContain(word);
});

test("no hint for what is not known", () => {
  expect(hintOf("something else: no such file or directory")).toBeUndefined();
});
