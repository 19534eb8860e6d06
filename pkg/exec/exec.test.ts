import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import * as viaExeca from "./node.ts";
import type { RunOptions } from "./run.ts";

// The same tests for each body, each on the runtime that it is for (execa's early errors throw under Bun).
const bodies: [string, typeof viaExeca.run][] = [
  process.versions.bun ? ["Bun.spawn", (await import("./bun.ts")).run] : ["execa", viaExeca.run],
];

const posix = process.platform !== "win32";
let dir = "";
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), "tscni-exec-"));
});
afterAll(() => rmSync(dir, { recursive: true }));

const node = process.execPath;
const none: RunOptions = { stdin: "", env: {} };
const js = (code: string) => [...(process.versions.bun ? ["-e"] : ["--input-type=module", "-e"]), code];

function script(name: string, text: string, mode = 0o755): string {
  const file = join(dir, name);
  writeFileSync(file, text, { mode });
  return file;
}

describe.each(bodies)("%s", (name, run) => {
  test("gives stdin and env, and takes both outputs and the exit code", async () => {
    const code =
      "let s='';process.stdin.on('data',d=>s+=d).on('end',()=>{process.stdout.write(s+process.env.X+String(process.env.HOME));process.stderr.write('warn');process.exitCode=3})";
    const result = await run(node, js(code), { stdin: "in é ", env: { X: "out " } });
    expect(result).toMatchObject({ stdout: "in é out undefined", stderr: "warn", exitCode: 3 });
    expect(result.signal).toBeUndefined();
    expect(result.spawnError).toBeUndefined();
    expect(result.stopped).toBeUndefined();
    expect(result.durationMs).toBeGreaterThan(0);
  });

  test("a child that does not read its input is no error", async () => {
    const result = await run(node, js("process.stdout.write('done')"), {
      stdin: "x".repeat(4 << 20),
      env: {},
    });
    expect(result).toMatchObject({ stdout: "done", exitCode: 0 });
  });

  test("large input and output pass at the same time", async () => {
    const stdin = "0123456789abcdef".repeat(1 << 17);
    const result = await run(node, js("process.stdin.pipe(process.stdout)"), { stdin, env: {} });
    expect(result.stdout.length).toBe(stdin.length);
    expect(result.stdout === stdin).toBe(true);
  });

  test("a missing program is told by its errno", async () => {
    const result = await run(join(dir, "nothing"), [], none);
    expect(result.spawnError?.code).toBe("ENOENT");
    expect(result.exitCode).toBeUndefined();
  });

  test("an environment that no process can have is told, not thrown", async () => {
    const result = await run(node, js(""), { stdin: "", env: { X: "a\0b" } });
    expect(result.spawnError).toBeDefined();
  });

  test("a signal that has fired already starts nothing", async () => {
    const marker = join(dir, `${name}-aborted`);
    const result = await run(node, js(`require('fs').writeFileSync(${JSON.stringify(marker)},'')`), {
      ...none,
      signal: AbortSignal.abort(),
    });
    expect(result.stopped).toBe("aborted");
    expect(() => readFileSync(marker)).toThrow();
  });

  test("endless output ends the child", async () => {
    const code =
      "const b='x'.repeat(65536);const w=()=>{while(process.stdout.write(b));process.stdout.once('drain',w)};w()";
    const result = await run(node, js(code), { ...none, maxOutputBytes: 1 << 20, timeoutMs: 20_000 });
    expect(result.stopped).toBe("output");
    expect(result.stdout.length).toBeLessThanOrEqual(1 << 20);
  });

  describe.runIf(posix)("on POSIX", () => {
    test("a time limit kills the child and what it started, and says so", async () => {
      const pidFile = join(dir, `${name}-pid`);
      const file = script(`${name}-hang`, `#!/bin/sh\nsleep 60 &\necho $! > ${pidFile}\necho early\nwait\n`);
      const begin = performance.now();
      const result = await run(file, [], { ...none, timeoutMs: 500 });
      expect(result).toMatchObject({ stopped: "timeout", signal: "SIGKILL", stdout: "early\n" });
      expect(performance.now() - begin).toBeLessThan(10_000);
      await expectGone(Number(readFileSync(pidFile, "utf8")));
    });

    test("an abort kills the child", async () => {
      const controller = new AbortController();
      setTimeout(() => controller.abort(), 200);
      const result = await run("/bin/sleep", ["60"], { ...none, signal: controller.signal });
      expect(result).toMatchObject({ stopped: "aborted", signal: "SIGKILL" });
    });

    test("a child killed by a signal of its own names it", async () => {
      const result = await run("/bin/sh", ["-c", "echo half; kill -TERM $$"], none);
      expect(result).toMatchObject({ signal: "SIGTERM", stdout: "half\n" });
      expect(result.exitCode).toBeUndefined();
      expect(result.stopped).toBeUndefined();
    });

    test("a daemon that keeps the pipes open is not waited for", async () => {
      const begin = performance.now();
      const result = await run("/bin/sh", ["-c", "echo out; sleep 30 & exit 0"], none);
      expect(result).toMatchObject({ stdout: "out\n", exitCode: 0 });
      expect(performance.now() - begin).toBeLessThan(10_000);
    });

    test.each([
      ["not executable", () => script("noexec", "#!/bin/sh\n", 0o644), "EACCES"],
      ["a folder", () => dir, "EACCES"],
      ["a script whose interpreter is missing", () => script("interp", "#!/nowhere/sh\n"), "ENOENT"],
    ])("%s", async (_, file, code) => {
      expect((await run(file(), [], none)).spawnError?.code).toBe(code);
    });
  });

  test.runIf(process.platform === "linux")("a program that is being written is ETXTBSY", async () => {
    const file = script(`${name}-busy`, "#!/bin/sh\n");
    const fd = openSync(file, "r+");
    try {
      expect((await run(file, [], none)).spawnError?.code).toBe("ETXTBSY");
    } finally {
      closeSync(fd);
    }
  });
});

async function expectGone(pid: number): Promise<void> {
  for (let i = 0; i < 50; i++) {
    try {
      process.kill(pid, 0);
      // A zombie that nobody reaps in a container without an init is as good as gone.
      if (process.platform === "linux" && /\) Z /.test(readFileSync(`/proc/${pid}/stat`, "utf8"))) return;
    } catch {
      return;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`process ${pid} is still running`);
}
