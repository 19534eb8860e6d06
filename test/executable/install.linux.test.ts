import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { bin, type Outcome, root, run } from "./executable.ts";

const installed = readdirSync(bin).sort();
const env = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin" };

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "tscni-install-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

const install = (...args: string[]): Promise<Outcome> =>
  run([join(root, "scripts/install"), "--from", bin, ...args], { env });

const version = (plugin: string): Promise<Outcome> =>
  run([join(dir, plugin)], { env: { CNI_COMMAND: "VERSION" } });

/** Someone else's program under a plugin's name. */
function foreign(name: string, says = "foreign"): void {
  writeFileSync(join(dir, name), `#!/bin/sh\necho ${says}\n`);
  chmodSync(join(dir, name), 0o755);
}

const visible = (): string[] => readdirSync(dir).filter((name) => !name.startsWith("."));

test("installs a working executable with its links, and takes all of it away", async () => {
  expect(await install(dir)).toMatchObject({ status: 0, stderr: "" });
  expect(visible().sort()).toEqual(installed);
  expect(readlinkSync(join(dir, "loopback"))).toBe("tscni");
  expect(JSON.parse((await version("loopback")).stdout)).toMatchObject({ cniVersion: "1.1.0" });

  expect(await install("--uninstall", dir)).toMatchObject({ status: 0, stderr: "" });
  expect(readdirSync(dir)).toEqual([]);
});

test("makes a folder that is missing", async () => {
  const below = join(dir, "opt/cni/bin");
  expect(await install(below)).toMatchObject({ status: 0 });
  expect(existsSync(join(below, "bridge"))).toBe(true);
});

test("leaves files of other names alone, keeps those of a plugin's name and puts them back", async () => {
  foreign("portmap-of-mine");
  foreign("bridge", "Go bridge");
  symlinkSync("portmap-of-mine", join(dir, "loopback"));
  const before = readFileSync(join(dir, "bridge"), "utf8");

  const { stdout } = await install(dir);
  expect(stdout).toContain(`replaced ${dir}/bridge`);
  expect(JSON.parse((await version("bridge")).stdout)).toMatchObject({ cniVersion: "1.1.0" });
  await install(dir);

  expect((await install("--uninstall", dir)).stdout).toContain(`restored ${dir}/bridge`);
  expect(readdirSync(dir).sort()).toEqual(["bridge", "loopback", "portmap-of-mine"]);
  expect(readFileSync(join(dir, "bridge"), "utf8")).toBe(before);
  expect(readlinkSync(join(dir, "loopback"))).toBe("portmap-of-mine");
});

test("--keep leaves them in their place", async () => {
  foreign("bridge", "Go bridge");
  expect((await install("--keep", dir)).stdout).toContain(`kept     ${dir}/bridge`);
  expect((await version("bridge")).stdout).toBe("Go bridge\n");
  expect(readlinkSync(join(dir, "loopback"))).toBe("tscni");
  await install("--uninstall", dir);
  expect(readdirSync(dir)).toEqual(["bridge"]);
});

test("what someone else put in the place of ours since is not taken away", async () => {
  await install(dir);
  rmSync(join(dir, "bridge"));
  foreign("bridge", "newer");
  rmSync(join(dir, "tscni"));
  foreign("tscni");
  const { stdout } = await install("--uninstall", dir);
  expect(stdout).toContain(`left     ${dir}/bridge`);
  expect(visible().sort()).toEqual(["bridge", "tscni"]);
  expect((await version("bridge")).stdout).toBe("newer\n");
});

test("a link of a plugin that is gone from the build goes", async () => {
  const from = join(dir, "build");
  mkdirSync(from);
  for (const name of ["tscni", "cnitool"]) writeFileSync(join(from, name), "#!/bin/sh\n");
  for (const name of ["bridge", "oldplugin"]) symlinkSync("tscni", join(from, name));
  const target = join(dir, "target");
  await run([join(root, "scripts/install"), "--from", from, target], { env });
  expect(existsSync(join(target, "oldplugin"))).toBe(true);
  await install(target);
  expect(existsSync(join(target, "oldplugin"))).toBe(false);
});

test("says what is missing and changes nothing when there is no build, no room or nothing to uninstall", async () => {
  foreign("bridge");
  const none = await run([join(root, "scripts/install"), "--from", "/nonexistent", dir], { env });
  expect(none).toMatchObject({ status: 1, stderr: expect.stringContaining("npm run build") });
  // 1 MB is less than the executable: its copy fails as on a full disk.
  const command = `ulimit -f 1000; trap '' XFSZ; exec "$0" "$@"`;
  const full = await run(["/bin/bash", "-c", command, join(root, "scripts/install"), "--from", bin, dir], {
    env,
  });
  expect(full.status).toBe(1);
  expect((await install("--uninstall", dir)).status).toBe(1);
  expect(readdirSync(dir)).toEqual(["bridge"]);
  expect((await version("bridge")).stdout).toBe("foreign\n");
});

test("killed at any moment, what is there works, and the next install and uninstall set it right", async () => {
  foreign("bridge", "Go bridge");
  for (let ms = 20; ms < 700; ms += 60) {
    await run(["timeout", "-s", "KILL", `${ms / 1000}`, join(root, "scripts/install"), "--from", bin, dir], {
      env,
    });
    expect(await version("bridge")).toMatchObject({ status: 0, stderr: "" });
  }
  expect(await install(dir)).toMatchObject({ status: 0 });
  expect(await install("--uninstall", dir)).toMatchObject({ status: 0 });
  expect(readdirSync(dir)).toEqual(["bridge"]);
  expect((await version("bridge")).stdout).toBe("Go bridge\n");
});

test("plugins that run while it installs, again and again, never fail", async () => {
  // A binary: of a script, the shell would open what the name means by then.
  copyFileSync("/bin/true", join(dir, "bridge"));
  let installing = true;
  const failures: Outcome[] = [];
  let runs = 0;
  const worker = async () => {
    while (installing) {
      const outcome = await version("bridge");
      runs++;
      if (outcome.status !== 0 || outcome.stderr !== "") failures.push(outcome);
    }
  };
  const workers = [worker(), worker(), worker()];
  for (let i = 0; i < 8; i++) await install(dir);
  installing = false;
  await Promise.all(workers);
  expect(failures).toEqual([]);
  expect(runs).toBeGreaterThan(50);
});
