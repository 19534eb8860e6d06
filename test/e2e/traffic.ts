import { join } from "node:path";
import { commandIn, type NamespaceLike, run } from "@tscni/test-support";

/** Why there can't be traffic between a test's namespaces; undefined when there can. */
export const trafficProblem = (): string | undefined =>
  Bun.which("nc.openbsd") ? undefined : "nc.openbsd (netcat-openbsd) is not installed";

/** Runs server.ts in a namespace until closed. */
export async function serveIn(ns: NamespaceLike, name: string, ports: number[]): Promise<{ close(): void }> {
  run(...commandIn(ns, ["ip", "link", "set", "lo", "up"]));
  const server = [process.execPath, join(import.meta.dirname, "server.ts"), name, ...ports.map(String)];
  const child = Bun.spawn(commandIn(ns, server), { stdin: "ignore", stdout: "ignore", stderr: "inherit" });
  for (let i = 0; i < 100; i++) {
    if (ask(ns, "::1", ports[0]!) !== "") return { close: () => child.kill() };
    await Bun.sleep(20);
  }
  child.kill();
  throw new Error(`${name} does not serve`);
}

/** What a server answers; "" when it does not within a second. */
export function ask(from: NamespaceLike, address: string, port: number, { udp = false } = {}): string {
  const nc = ["nc.openbsd", ...(udp ? ["-u", "-W1"] : ["-N"]), "-w1", address, String(port)];
  const { stdout } = Bun.spawnSync(["timeout", "2", ...commandIn(from, nc)], { stdin: Buffer.from("q\n") });
  return stdout.toString().trim();
}

/** A TCP connection that stays: what a container must not lose. */
export function connect(from: NamespaceLike, address: string, port: number) {
  const child = Bun.spawn(commandIn(from, ["nc.openbsd", address, String(port)]), {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "ignore",
  });
  const reader = child.stdout.getReader();
  return {
    /** Sends a line; resolves to what comes back, "" after five seconds. */
    async say(text: string): Promise<string> {
      child.stdin.write(`${text}\n`);
      child.stdin.flush();
      const late = Bun.sleep(5000).then(() => ({ value: undefined }));
      const { value } = await Promise.race([reader.read(), late]);
      return value === undefined ? "" : Buffer.from(value).toString().trim();
    },
    close: () => child.kill(),
  };
}
