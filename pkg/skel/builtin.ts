import type { Builtin } from "@tscni/ipam";
import type { Result } from "@tscni/types";
import { callPlugin } from "./call.ts";
import type { Plugin } from "./plugin.ts";
import { parseNetworkConfig } from "./request.ts";

/** A plugin as a function for those who delegate to it within this process: same checks, no process. */
export function builtin(load: () => Plugin): Builtin {
  return async (command, call) => {
    const { containerId, netns, ifName, args, path, stdin } = call;
    const request = { command, containerId, netns, ifName, args, path, stdin, ...parseNetworkConfig(stdin) };
    let answer: Result | undefined;
    await callPlugin(load(), request, call.warn, (result) => {
      answer = result;
    });
    return answer;
  };
}
