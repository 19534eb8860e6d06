import { closeSync, openSync, readSync } from "node:fs";
import { endianness } from "node:os";
import { basename } from "node:path";
import type { RunResult } from "@tscni/exec";
import { CniError, ErrorCode, messageOf } from "@tscni/types";
import { hintOf } from "./hints.ts";

/** What is known about the run of a plugin that failed, beside its error. */
export interface PluginFacts {
  /** The plugin's file. */
  plugin: string;
  /** ADD, DEL, CHECK… */
  verb: string;
  network?: string;
  durationMs: number;
  /** How the process ended, as Go words it: "exit status 1", "signal: killed". */
  ending: string;
  signal?: string;
  /** The last lines of what it wrote to stderr. */
  stderrTail: string;
  /** What to do about it, for well-known causes. */
  hint?: string;
}

/** A plugin's error with what is known about the run; its `details` say all of it in text. */
export class PluginError extends CniError {
  readonly facts: PluginFacts;

  constructor(code: number, msg: string, details: string, facts: PluginFacts) {
    super(code, msg, { details: [details, ...factLines(facts)].filter((line) => line !== "").join("\n") });
    this.facts = facts;
  }
}

function factLines(facts: PluginFacts): string[] {
  const network = facts.network ? ` for network "${facts.network}"` : "";
  return [
    `${basename(facts.plugin)} ${facts.verb}${network} failed after ${durationText(facts.durationMs)}: ${facts.ending}`,
    facts.stderrTail && `stderr: ${facts.stderrTail}`,
    facts.hint ? `what to do: ${facts.hint}` : "",
  ];
}

/** 12 ms, 1.2 s */
export function durationText(ms: number): string {
  return ms < 1000 ? `${Math.max(1, Math.round(ms))} ms` : `${(ms / 1000).toFixed(1)} s`;
}

/**
 * The error of a run that failed: the plugin's own error object from stdout, or a message in the words of the
 * Go library when there is none (its pkg/invoke/raw_exec.go, pluginErr); those have code 0.
 */
export function pluginErrorOf(
  file: string,
  call: { command: string },
  result: RunResult,
  options: { network?: string; timeoutMs?: number },
): PluginError {
  const foreign = wasHandedToShell(file, result);
  const ending = foreign ? `fork/exec ${file}: ${errnoTexts.ENOEXEC}` : endingOf(file, result);
  const stderr = foreign ? "" : result.stderr;
  const { code, msg, details } = errorObjectOf(result.stdout, stderr, ending);
  const whole = ending + stopText(result, options.timeoutMs);
  const hint = hintOf(`${msg}\n${details}`) ?? hintOf(whole) ?? hintOf(stderr);
  return new PluginError(code, msg, details, {
    plugin: file,
    verb: call.command,
    ...(options.network ? { network: options.network } : {}),
    durationMs: result.durationMs,
    ending: whole,
    ...(result.signal ? { signal: result.signal } : {}),
    // When stderr is the message already, its tail would say it twice.
    stderrTail: result.stdout === "" ? "" : tail(stderr, 5),
    ...(hint === undefined ? {} : { hint }),
  });
}

function errorObjectOf(stdout: string, stderr: string, ending: string) {
  const silent = `netplugin failed with no error message: ${ending}`;
  const mapped = (msg: string) => ({ code: ErrorCode.Unknown, msg, details: "" });
  if (stdout === "") return mapped(stderr === "" ? silent : `netplugin failed: ${quote(stderr)}: ${ending}`);
  try {
    const { code, msg, details } = decodeErrorObject(stdout);
    return { code, msg: msg || silent, details };
  } catch (error) {
    return mapped(
      `netplugin failed but error parsing its diagnostic message ${quote(stdout)}: ${messageOf(error)}`,
    );
  }
}

/** https://www.cni.dev/docs/spec/#error; keys in any case, as Go reads them. */
function decodeErrorObject(text: string): { code: number; msg: string; details: string } {
  const json: unknown = JSON.parse(text) ?? {};
  if (typeof json !== "object" || Array.isArray(json)) throw new TypeError("it is not an object");
  const get = (key: string) =>
    Object.entries(json as object).findLast(([name]) => name.toLowerCase() === key)?.[1] ?? undefined;
  const code = get("code") ?? 0;
  const msg = get("msg") ?? "";
  const details = get("details") ?? "";
  if (!Number.isSafeInteger(code) || code < 0) throw new TypeError("its code is not a number");
  if (typeof msg !== "string" || typeof details !== "string") throw new TypeError("its msg is not a string");
  return { code, msg, details };
}

/** How a process ended, in Go's words (os.ProcessState, syscall.Errno, syscall.Signal). */
function endingOf(file: string, result: RunResult): string {
  if (result.spawnError) {
    const { code, message } = result.spawnError;
    return `fork/exec ${file}: ${errnoTexts[code] ?? message}`;
  }
  if (result.signal) return `signal: ${signalTexts[result.signal] ?? result.signal}`;
  if (result.exitCode === undefined) return "it was not started";
  return `exit status ${result.exitCode}`;
}

function stopText({ stopped }: RunResult, timeoutMs: number | undefined): string {
  if (stopped === "timeout") return `, stopped at its time limit of ${durationText(timeoutMs ?? 0)}`;
  if (stopped === "aborted") return ", stopped at the caller's request";
  return stopped === "output" ? ", stopped because its output had no end" : "";
}

const errnoTexts: Record<string, string | undefined> = {
  ENOENT: "no such file or directory",
  EACCES: "permission denied",
  EPERM: "operation not permitted",
  ENOEXEC: "exec format error",
  ETXTBSY: "text file busy",
  E2BIG: "argument list too long",
  ENOMEM: "cannot allocate memory",
  EAGAIN: "resource temporarily unavailable",
  EMFILE: "too many open files",
  ENOTDIR: "not a directory",
  ELOOP: "too many levels of symbolic links",
};

const signalTexts: Record<string, string | undefined> = {
  SIGHUP: "hangup",
  SIGINT: "interrupt",
  SIGQUIT: "quit",
  SIGILL: "illegal instruction",
  SIGTRAP: "trace/breakpoint trap",
  SIGABRT: "aborted",
  SIGBUS: "bus error",
  SIGFPE: "floating point exception",
  SIGKILL: "killed",
  SIGSEGV: "segmentation fault",
  SIGPIPE: "broken pipe",
  SIGALRM: "alarm clock",
  SIGTERM: "terminated",
};

/** ELFMAG of elf.h, read with the highest byte first */
const elfMagic = 0x7f454c46;

/** e_machine of elf.h by Node's name of an architecture. */
const elfMachines: Record<string, number | undefined> = {
  x64: 62,
  ia32: 3,
  arm64: 183,
  arm: 40,
  riscv64: 243,
  s390x: 22,
  ppc64: 21,
  loong64: 258,
};

/**
 * Where the C library hands what the kernel can't execute to /bin/sh (Node on Linux), that one's complaint
 * about a binary file hides the cause.
 */
function wasHandedToShell(file: string, result: RunResult): boolean {
  const ofShell = result.exitCode === 2 || result.exitCode === 126 || result.exitCode === 127;
  return ofShell && result.stdout === "" && result.stderr.includes(file) && isForeign(file);
}

/** Whether a file is an ELF program for another kind of machine, or binary data that is no program at all. */
function isForeign(file: string): boolean {
  const head = new Uint8Array(20);
  try {
    const fd = openSync(file, "r");
    try {
      readSync(fd, head, 0, 20, 0);
    } finally {
      closeSync(fd);
    }
  } catch {
    return false;
  }
  const fields = new DataView(head.buffer);
  if (fields.getUint32(0) !== elfMagic) return head.subarray(0, 4).includes(0) && head[0] !== 0x4d;
  const littleEndian = head[5] === 1;
  if (littleEndian !== (endianness() === "LE")) return true;
  return fields.getUint16(18, littleEndian) !== elfMachines[process.arch];
}

/** As Go's %q does, long texts cut. */
function quote(text: string): string {
  return JSON.stringify(text.length > 2000 ? `${text.slice(0, 2000)}...` : text);
}

function tail(text: string, lines: number): string {
  return text.trimEnd().split("\n").slice(-lines).join("\n").slice(-2000);
}
