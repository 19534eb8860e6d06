import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { calls, cnitool, conflist, dir, env, onWindows, silent, withScriptPlugins } from "./fixture.ts";

describe.skipIf(onWindows)("validate", () => {
  withScriptPlugins();

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
