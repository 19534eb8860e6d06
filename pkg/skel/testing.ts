import { confSchema, v } from "@tscni/conf";
import { emptyResult } from "@tscni/types";
import { definePlugin, type Plugin, type PluginDefinition, runPlugin } from "./index.ts";

/*
 * For skel's own tests: a plugin that writes down what it was told, and a process only pretended.
 */

export const ProbeConf = confSchema({ mtu: v.optional(v.number(), 0), dataDir: v.optional(v.string()) });

type Probe = PluginDefinition<typeof ProbeConf>;
type ProbeCall = Parameters<Probe["del"]>[0];

export interface Seen {
  verb: string;
  call: ProbeCall;
}

/** A plugin whose verbs succeed and append to `seen`. */
export function probe(seen: Seen[], overrides: Partial<Probe> = {}): Plugin {
  const note = (verb: string) => (call: ProbeCall) => {
    seen.push({ verb, call });
  };
  return definePlugin({
    name: "probe",
    about: "writes down what it is told",
    conf: ProbeConf,
    delNeeds: ["dataDir"],
    add(call) {
      seen.push({ verb: "ADD", call });
      return { ...emptyResult(), ips: [{ address: "10.1.2.3/24" }] };
    },
    del: note("DEL"),
    check: note("CHECK"),
    status: note("STATUS"),
    gc: note("GC"),
    ...overrides,
  });
}

export interface Outcome {
  status: number[];
  stdout: string[];
  stderr: string;
  seen: Seen[];
}

export interface Input {
  env?: Record<string, string | undefined>;
  /** An object is sent as JSON. */
  stdin?: object | string;
  plugin?: Partial<Probe>;
  /** Replaces parts of the process. */
  io?: Partial<Parameters<typeof runPlugin>[1]>;
}

/** An environment in which every verb is content. The namespace does not exist; the probe does not look. */
export const goodEnv = {
  CNI_CONTAINERID: "c1",
  CNI_NETNS: "/run/netns/tscni-no-such",
  CNI_IFNAME: "eth0",
  CNI_PATH: "/opt/cni/bin",
};

export const conf = (cniVersion: string, more: object = {}): object => ({ cniVersion, name: "net", ...more });

/** Runs the probe and returns all that left it: each write to stdout, stderr, each exit status. */
export async function run(command: string | undefined, input: Input = {}): Promise<Outcome> {
  const outcome: Outcome = { status: [], stdout: [], stderr: "", seen: [] };
  const { stdin = conf("1.1.0") } = input;
  await runPlugin(probe(outcome.seen, input.plugin), {
    env: { CNI_COMMAND: command, ...goodEnv, ...input.env },
    readStdin: () => (typeof stdin === "string" ? stdin : JSON.stringify(stdin)),
    writeStdout: (text) => {
      outcome.stdout.push(text);
    },
    writeStderr: (text) => {
      outcome.stderr += text;
    },
    exit: (status) => {
      outcome.status.push(status);
    },
    ...input.io,
  });
  return outcome;
}

/** The error object of a call that must fail before any verb: exactly one write, exit 1. */
export async function errorOf(command: string, input: Input = {}): Promise<Record<string, unknown>> {
  const outcome = await run(command, input);
  if (outcome.status.join() !== "1" || outcome.stdout.length !== 1 || outcome.seen.length !== 0)
    throw new Error(`no failure before the verb: ${JSON.stringify(outcome)}`);
  return JSON.parse(outcome.stdout[0]!);
}
