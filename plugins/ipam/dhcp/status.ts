import { writeAll } from "@tscni/sys";
import { ask } from "./ask.ts";
import { defaultSocketPath } from "./conf.ts";
import { split, UsageError } from "./daemon/flags.ts";
import { tableOf } from "./table.ts";

/** `dhcp status`: prints the daemon's leases, as a table or, with --json, as one JSON object. Throws CniError, UsageError. */
export function printStatus(args: readonly string[]): void {
  let [json, socketPath] = [false, defaultSocketPath];
  for (let i = 0; i < args.length; i++) {
    const { name, value } = split(args[i]!);
    if (name === "json" && value === undefined) json = true;
    else if (name === "socketpath") {
      const given = value ?? args[++i];
      if (!given) throw new UsageError("flag needs an argument: -socketpath");
      socketPath = given;
    } else throw new UsageError(`flag provided but not defined: -${name}`);
  }
  const answer = ask(socketPath, { verb: "LIST" });
  const leases = "leases" in answer ? answer.leases : [];
  const text = json ? JSON.stringify({ leases }, undefined, 2) : tableOf(leases);
  writeAll(1, new TextEncoder().encode(`${text}\n`));
}
