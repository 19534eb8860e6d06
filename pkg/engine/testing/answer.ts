/** The probe as a program: prints what it saw and ends. With the argument "recurse" it recurses without end instead. */
import { exitNow, writeAll } from "@tscni/sys";
import { probe } from "./probe.ts";

function recurse(depth: number): number {
  return recurse(depth + 1) + 1;
}

function ending(): string {
  try {
    return String(recurse(0));
  } catch (error) {
    return (error as Error).constructor.name;
  }
}

const [, , wanted] = process.argv;
writeAll(1, new TextEncoder().encode(wanted === "recurse" ? ending() : JSON.stringify(probe())));
exitNow(0);
