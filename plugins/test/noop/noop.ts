import { parseCniArgs } from "@tscni/conf";
import { type Call, definePlugin } from "@tscni/skel";
import { environmentVariable, exitNow, O, readTextFile, writeAll, writeTextFile } from "@tscni/sys";
import { CniError, ErrorCode, encodeResult, messageOf, type SpecVersion, specVersions } from "@tscni/types";
import { base64Of } from "./base64.ts";
import { NoopConf } from "./conf.ts";

/** The file that says what to do, under the keys of the reference's; `Command` and `CmdArgs` are what we write back. */
interface Script {
  ReportResult?: string;
  ReportError?: string;
  ReportErrorCode?: number;
  ReportStderr?: string;
  ReportVersionSupport?: SpecVersion[] | null;
  ExitWithCode?: number;
}

/**
 * A test double: touches no network. It prints what its file says, well-formed or not, so it does not go through skel's
 * result; a call ends in `behave`.
 */
export default definePlugin({
  name: "noop",
  about: "does what a file says, for tests of runtimes",
  conf: NoopConf,
  versions: versions(),

  add: (call) => behave(call, "ADD"),
  del: (call) => behave(call, "DEL"),
  check: (call) => behave(call, "CHECK"),
  status: (call) => behave(call, "STATUS"),
  gc: (call) => behave(call, "GC"),
});

function behave(call: Call<NoopConf>, command: string): never {
  const file = scriptFile(call.args) ?? call.conf.debugFile;
  if (file === undefined) {
    print(2, "CNI_ARGS or config empty, no debug behavior\n");
    return end("{}", 0);
  }
  const script = readScript(file);
  const CmdArgs = argumentsOf(call);
  writeJson(file, { ...script, Command: command, CmdArgs });
  if (call.conf.commandLog) appendTo(call.conf.commandLog, { Command: command, CmdArgs });
  if (script.ReportStderr) print(2, script.ReportStderr);
  if (script.ReportError)
    throw new CniError(script.ReportErrorCode || ErrorCode.Internal, script.ReportError);
  return end(resultOf(call, script.ReportResult ?? ""), script.ExitWithCode ?? 0);
}

/** The previous result, also with a name server put in, or the text as it is. */
function resultOf({ prevResult, cniVersion }: Call<NoopConf>, asked: string): string {
  if (asked !== "PASSTHROUGH" && asked !== "INJECT-DNS") return asked;
  if (prevResult === undefined)
    throw new CniError(ErrorCode.InvalidNetworkConfig, `ReportResult: "${asked}" takes a prevResult`);
  const dns = asked === "INJECT-DNS" ? { ...prevResult.dns, nameservers: ["1.2.3.4"] } : prevResult.dns;
  return JSON.stringify(encodeResult({ ...prevResult, dns }, cniVersion));
}

/** As Go's skel.CmdArgs come out in JSON. */
const argumentsOf = (call: Call<NoopConf>) => ({
  ContainerID: call.containerId,
  Netns: call.netns,
  IfName: call.ifName,
  Args: call.args,
  Path: call.path,
  NetnsOverride: environmentVariable("CNI_NETNS_OVERRIDE") ?? "",
  StdinData: base64Of(call.stdin),
});

function scriptFile(args: string): string | undefined {
  return args === "" ? undefined : parseCniArgs(`${args};IgnoreUnknown=1`, ["DEBUG"]).DEBUG;
}

function readScript(file: string): Script {
  try {
    return JSON.parse(readTextFile(file));
  } catch (error) {
    throw new CniError(ErrorCode.IoFailure, `debugFile: ${file}: ${messageOf(error)}`);
  }
}

/** A log that is there, empty or a list. */
function appendTo(file: string, entry: object): void {
  const text = readTextFile(file);
  writeJson(file, [...(text === "" ? [] : JSON.parse(text)), entry]);
}

const writeJson = (file: string, value: unknown): void =>
  writeTextFile(file, JSON.stringify(value), O.WRONLY | O.CREAT | O.TRUNC, 0o600);

/** What VERSION says: the file may tell, as far as CNI_ARGS lead to one. */
function versions(): readonly SpecVersion[] {
  const every = ["0.-42.0" as SpecVersion, ...specVersions];
  try {
    const file = scriptFile(environmentVariable("CNI_ARGS") ?? "");
    return (file === undefined ? undefined : readScript(file).ReportVersionSupport) ?? every;
  } catch {
    return every; // The verb that follows says what is wrong with it.
  }
}

const print = (fd: number, text: string): void => writeAll(fd, new TextEncoder().encode(text));

function end(text: string, status: number): never {
  print(1, text);
  return exitNow(status);
}
