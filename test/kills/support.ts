import { type Conf, envOf, type NodeCall, type TestNode } from "@tscni/test-support";

/** Starts a plugin as `node.call` does, and kills it (SIGKILL) after some milliseconds; tells whether it had ended. */
export async function callAndKill(
  node: TestNode,
  verb: string,
  conf: Conf,
  call: NodeCall,
  afterMs: number,
): Promise<"killed" | "ended"> {
  const env = Object.entries({ PATH: process.env.PATH, ...envOf(verb, call) });
  const child = Bun.spawn(node.command(conf.type, call.bin), {
    env: Object.fromEntries(env.filter((entry): entry is [string, string] => entry[1] !== undefined)),
    stdin: new TextEncoder().encode(JSON.stringify(conf)),
    stdout: "ignore",
    stderr: "ignore",
  });
  const end = performance.now() + afterMs;
  while (performance.now() < end) await new Promise(setImmediate);
  child.kill("SIGKILL");
  await child.exited;
  return child.signalCode === "SIGKILL" ? "killed" : "ended";
}
