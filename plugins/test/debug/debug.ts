import { openNamespaceIfPresent } from "@tscni/ns";
import { type Call, definePlugin } from "@tscni/skel";
import { close, environmentVariable, findProgram, O, open, runChild, writeAll } from "@tscni/sys";
import { emptyResult, messageOf } from "@tscni/types";
import { DebugConf } from "./conf.ts";

type DebugCall = Call<DebugConf>;

/** Writes down how it was called, and runs commands in the container's namespace. Hands the result before it on. */
export default definePlugin({
  name: "debug",
  about: "writes down how it is called and runs hooks in the container",
  conf: DebugConf,

  add(call) {
    note(call, "CmdAdd");
    runHooks(call, call.conf.addHooks);
    return call.prevResult ?? emptyResult();
  },

  del(call) {
    note(call, "CmdDel");
    runHooks(call, call.conf.delHooks);
  },

  check(call) {
    note(call, "CmdCheck");
    runHooks(call, call.conf.checkHooks);
  },

  status(call) {
    note(call, "CmdStatus");
  },

  gc(call) {
    note(call, "CmdGC");
  },
});

const hookTimeoutMs = 60_000;

/** What a hook fails with goes to stderr: it is a look at the container, not part of its network. */
function runHooks({ netns, warn }: DebugCall, hooks: readonly (readonly string[])[]): void {
  using sandbox = hooks.length === 0 ? undefined : openNamespaceIfPresent(netns);
  if (sandbox === undefined) return;
  const path = environmentVariable("PATH") ?? "";
  for (const [name = "", ...args] of hooks) {
    const what = [name, ...args].join(" ");
    try {
      const file = name.startsWith("/") ? name : findProgram(name, path);
      if (file === undefined) throw new Error("there is no such program");
      const { exitCode, stderr } = sandbox.enter(() =>
        runChild(file, args, { env: [`PATH=${path}`], timeoutMs: hookTimeoutMs }),
      );
      if (exitCode !== 0) throw new Error(`exit ${exitCode}: ${stderr}`);
    } catch (error) {
      warn(`hook "${what}": ${messageOf(error)}`);
    }
  }
}

/** Appends the call to the file that the config names, in the reference's form. */
function note(call: DebugCall, command: string): void {
  const { cniOutput } = call.conf;
  if (!cniOutput) return;
  const { containerId, netns, ifName, args, path, stdin } = call;
  const lines = [
    command,
    `ContainerID: ${containerId}`,
    `Netns: ${netns}`,
    `IfName: ${ifName}`,
    `Args: ${args}`,
    `Path: ${path}`,
    `StdinData: ${stdin}`,
    "----------------------",
  ];
  const fd = open(cniOutput, O.WRONLY | O.CREAT | O.APPEND, 0o644);
  try {
    writeAll(fd, new TextEncoder().encode(`${lines.join("\n")}\n`));
  } finally {
    close(fd);
  }
}
