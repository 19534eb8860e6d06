import { spawn, spawnSync } from "node:child_process";
import { closeSync, existsSync, openSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test, vi } from "vitest";
import { main } from "./index.ts";
import { containerIdOf } from "./runtime.ts";
import { calls, cnitool, conflist, dir, env, id, onWindows, withScriptPlugins } from "./verbs/fixture.ts";

describe.skipIf(onWindows)("the program and its completion", () => {
  withScriptPlugins();

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
