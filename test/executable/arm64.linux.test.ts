import { existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { root, run } from "./executable.ts";

/*
 * The executables for arm64, where they have been built (pkg/multicall/build.ts --target linux-arm64) and can be run
 * (Debian's qemu-user-static and libc6-arm64-cross).
 */
const folder = join(root, "dist/linux-arm64/bin");
const qemu = ["/usr/bin/qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"];

function needs(test: { skip(condition: boolean, note: string): void }): void {
  test.skip(!existsSync(join(folder, "tscni")), "dist/linux-arm64 has not been built");
  const missing = qemu.find((part) => part.startsWith("/") && !existsSync(part));
  test.skip(missing !== undefined, `${missing} is missing (qemu-user-static, libc6-arm64-cross)`);
}

test("knows which machine it is for", async (ctx) => {
  needs(ctx);
  const { stdout } = await run([...qemu, join(folder, "cnitool"), "version"]);
  expect(stdout).toContain("linux arm64");
});

test("makes system calls by arm64's numbers: host-local reserves an address", async (ctx) => {
  needs(ctx);
  const dir = mkdtempSync(join(tmpdir(), "tscni-arm64-"));
  try {
    const ipam = { type: "host-local", subnet: "10.1.0.0/24", dataDir: dir };
    const conf = JSON.stringify({ cniVersion: "1.1.0", name: "n", type: "host-local", ipam });
    const env = {
      CNI_COMMAND: "ADD",
      CNI_CONTAINERID: "a",
      CNI_NETNS: "/none",
      CNI_IFNAME: "eth0",
      CNI_PATH: "/none",
    };
    const command = [...qemu, join(folder, "tscni"), "host-local"];
    const { status, stdout } = await run(["/bin/bash", "-c", 'exec "$@" <<<"$0"', conf, ...command], { env });
    expect(JSON.parse(stdout)).toMatchObject({ ips: [{ address: "10.1.0.2/24" }] });
    expect(status).toBe(0);
    expect(readdirSync(join(dir, "n"))).toContain("10.1.0.2");
  } finally {
    rmSync(dir, { recursive: true });
  }
});
