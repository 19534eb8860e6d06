import { O, open, read } from "@tscni/sys";
import { setUmask, signalDescriptor } from "@tscni/sys/net";
import type { Loop } from "./loop.ts";

/*
 * What the daemon needs of the engine that runs it, beside the language.
 */

/** More than any chain of promises here has links. */
const links = 64;

/** Lets the engine do what it has to: go on with what was promised and, in Bun, deliver signals. */
export async function nextTurn(): Promise<void> {
  const { setImmediate: later } = globalThis; // which QuickJS lacks
  if (later !== undefined) return new Promise((resolve) => void later(resolve));
  for (let i = 0; i < links; i++) await undefined;
}

const [SIGINT, SIGTERM] = [2, 15];

/** Calls back when the daemon is asked to end. Bun has several threads, of which any may get a signal; QuickJS has one. */
export function onTermination(loop: Loop, callback: () => void): void {
  if (typeof process.on === "function")
    for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, callback);
  else loop.watch(signalDescriptor([SIGINT, SIGTERM]), callback);
}

/** What files and sockets are made from now on, others may not open. */
export function keepFilesPrivate(): void {
  setUmask(0o077);
}

export const processId = (): number => process.pid;

let random: number | undefined;

/** 32 random bits. */
export function randomUint32(): number {
  random ??= open("/dev/urandom", O.RDONLY);
  const bytes = new Uint8Array(4);
  read(random, bytes);
  return new DataView(bytes.buffer).getUint32(0);
}

/** A random number from -1 to 1. */
export const jitter = (): number => (randomUint32() / 0xffffffff) * 2 - 1;
