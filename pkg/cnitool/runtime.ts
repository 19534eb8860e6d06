import { createHash } from "node:crypto";
import type { NetworkConfigList, RuntimeConf } from "@tscni/libcni";
import { absolute, type Context, ifNameOf, networkOf } from "./context.ts";
import { parseDocument, SyntaxProblem } from "./document.ts";

/**
 * The network and the attachment that the words of add, check and del name. The order of the steps decides
 * which error comes first, and is that of Go's cnitool.
 */
export async function attachmentOf(context: Context): Promise<{ list: NetworkConfigList; rt: RuntimeConf }> {
  const list = await networkOf(context, context.words[0] ?? "");
  return { list, rt: runtimeOf(context) };
}

/** The attachment of add, check and del, whatever the network. */
export function runtimeOf(context: Context): RuntimeConf {
  const { capabilityArgs, args } = argumentsOf(context);
  const netns = absolute(context, context.words[1] ?? "");
  return { containerId: containerIdOf(netns), netns, ifName: ifNameOf(context), args, capabilityArgs };
}

/** CAP_ARGS and CNI_ARGS, checked. */
export function argumentsOf({ env }: Context) {
  const capabilityArgs = env.CAP_ARGS ? parseCapabilityArgs(env.CAP_ARGS) : {};
  const args = env.CNI_ARGS ? parseCniArgs(env.CNI_ARGS) : [];
  return { capabilityArgs, args };
}

/**
 * The container id that cnitool gives to a namespace: `cnitool-` and the first ten bytes of the SHA-512 of its
 * absolute path in hex, so that other runs, also of Go's cnitool, find what this one attached.
 */
export const containerIdOf = (netns: string): string =>
  `cnitool-${createHash("sha512").update(netns).digest("hex").slice(0, 20)}`;

/** `KEY=VALUE;KEY2=VALUE2`, where each pair has exactly one `=` and something on both sides of it. */
export function parseCniArgs(text: string): [string, string][] {
  return text.split(";").map((pair) => {
    const [key, value, ...more] = pair.split("=");
    if (!key || !value || more.length > 0) throw new Error(`invalid CNI_ARGS pair ${JSON.stringify(pair)}`);
    return [key, value];
  });
}

/** A JSON object; `null` counts as an empty one. */
export function parseCapabilityArgs(text: string): Record<string, unknown> {
  const value = parseJson(text) ?? {};
  if (typeof value !== "object" || Array.isArray(value))
    throw new Error(`CAP_ARGS: ${JSON.stringify(value).slice(0, 80)} is not a JSON object`);
  return value as Record<string, unknown>;
}

function parseJson(text: string): unknown {
  try {
    return parseDocument(text).value;
  } catch (error) {
    if (!(error instanceof SyntaxProblem)) throw error;
    const { line, column } = error.place;
    throw new Error(`CAP_ARGS: not JSON at line ${line}, column ${column}: ${error.message}`);
  }
}
