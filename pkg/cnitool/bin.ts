#!/usr/bin/env node
import { main } from "./index.ts";
import { processIo } from "./process.ts";

try {
  process.exitCode = await main(process.argv.slice(2), process.env, processIo(process.env));
} catch {
  // Only writing to stdout or stderr can fail here, and then there is nowhere to say so.
  process.exitCode = 1;
}
