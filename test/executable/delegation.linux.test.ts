import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { bin, run } from "./executable.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "tscni-delegation-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

/** STATUS of bridge, which asks host-local for its own, found in `path`. Runs after `prepare` in one shell. */
function bridgeStatus(path: string, prepare = "true") {
  const ipam = { type: "host-local", subnet: "10.1.0.0/24", dataDir: join(dir, "leases") };
  const conf = JSON.stringify({ cniVersion: "1.1.0", name: "n", type: "bridge", bridge: "tscni0", ipam });
  const script = `${prepare} && exec "$0" <<<"$1"`;
  return run(["unshare", "-m", "/bin/bash", "-c", script, join(bin, "bridge"), conf], {
    env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", CNI_COMMAND: "STATUS", CNI_PATH: path },
  });
}

test("a delegate that is this same executable is not started", async () => {
  const folder = join(dir, "noexec");
  mkdirSync(folder);
  // The same files under another path, from where nothing can be started.
  const mount = `mount --bind ${bin} ${folder} && mount -o remount,bind,noexec ${folder} && ! ${folder}/host-local 2>/dev/null`;
  expect(await bridgeStatus(folder, mount)).toMatchObject({ status: 0, stdout: "" });
});

test("its errors are those of the delegating plugin", async () => {
  writeFileSync(join(dir, "leases"), "a file where the folder should be");
  const { status, stdout } = await bridgeStatus(bin);
  expect(status).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({ code: 50 });
});

test("another program of the delegate's name that comes first in CNI_PATH is started", async () => {
  const script = `#!/bin/sh\necho '{"code":123,"msg":"someone else'"'"'s"}'\nexit 1\n`;
  writeFileSync(join(dir, "host-local"), script);
  chmodSync(join(dir, "host-local"), 0o755);
  const { stdout } = await bridgeStatus(`${dir}:${bin}`);
  expect(JSON.parse(stdout)).toMatchObject({ code: 123 });
});

test("a plugin that is its own delegate, or its delegate's, is an error and no endless chain", async () => {
  for (const type of ["bridge", "ptp"]) {
    const conf = JSON.stringify({ cniVersion: "1.1.0", name: "n", type: "bridge", ipam: { type } });
    const outcome = await run(["/bin/bash", "-c", 'exec "$0" <<<"$1"', join(bin, "bridge"), conf], {
      env: { PATH: "/usr/bin:/bin", CNI_COMMAND: "STATUS", CNI_PATH: bin },
    });
    expect(outcome.status).toBe(1);
    expect(JSON.parse(outcome.stdout).msg).toContain(`type: "${type}" is this plugin itself`);
  }
});
