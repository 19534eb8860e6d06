import { sameNamespace } from "@tscni/ns";
import { CniError, currentVersion, ErrorCode, messageOf, resultText, toCniError } from "@tscni/types";
import { callPlugin } from "./call.ts";
import { type Io, processIo } from "./io.ts";
import type { Plugin } from "./plugin.ts";
import { type Request, readRequest } from "./request.ts";

/** Serves one call of a plugin and ends the process: the whole life of a plugin executable. */
export async function runPlugin(plugin: Plugin, io: Io = processIo): Promise<void> {
  let cniVersion: string | undefined;
  try {
    if (!io.env.CNI_COMMAND) {
      io.writeStderr(aboutText(plugin));
    } else if (io.env.CNI_COMMAND === "VERSION") {
      io.writeStdout(versionText(plugin));
    } else {
      const request = readRequest(io);
      cniVersion = request.cniVersion;
      verifyNetns(request, io.env.CNI_NETNS_OVERRIDE);
      await callPlugin(
        plugin,
        request,
        (message) => io.writeStderr(`${plugin.name}: ${message}\n`),
        (result) => writeResult(resultText(result, request.cniVersion), io),
      );
    }
  } catch (error) {
    printError(error, cniVersion, io);
    return io.exit(1);
  }
  io.exit(0);
}

/** Throws code 5 when nobody can have read it whole: then the ADD is taken back. */
function writeResult(text: string, io: Io): void {
  try {
    io.writeStdout(text);
  } catch (error) {
    throw new CniError(ErrorCode.IoFailure, `error writing the result to stdout: ${messageOf(error)}`);
  }
}

function printError(error: unknown, cniVersion: string | undefined, io: Io): void {
  const text = JSON.stringify(toCniError(error).toObject(cniVersion), null, 4);
  try {
    io.writeStdout(text);
  } catch {
    io.writeStderr(`${text}\n`);
  }
}

function aboutText(plugin: Plugin): string {
  return `tscni ${plugin.name}: ${plugin.about}\nCNI protocol versions supported: ${plugin.versions.join(", ")}\n`;
}

/** One line, as the Go plugins print it: their library's version, whatever stdin says. */
function versionText(plugin: Plugin): string {
  return `${JSON.stringify({ cniVersion: currentVersion, supportedVersions: plugin.versions })}\n`;
}

/**
 * Refuses to work on the namespace that the plugin runs in, which would rename and move the node's own
 * interfaces. Before the verb touches anything (the Go plugins look only afterwards).
 */
function verifyNetns(request: Request, override = ""): void {
  const guarded = request.command === "ADD" || request.command === "DEL";
  if (!guarded || request.netns === "" || override === "1" || override.toLowerCase() === "true") return;
  if (sameNamespace(request.netns))
    throw new CniError(
      ErrorCode.InvalidNetNs,
      "plugin's netns and netns from CNI_NETNS should not be the same",
      { details: request.netns },
    );
}
