import { startTool } from "@tscni/sys";
import { NftError, nftErrorOf, nftMissing } from "./error.ts";
import type { NftText } from "./text.ts";

/** nft waits for nobody but the kernel; whoever takes longer hangs. */
const timeoutMs = 60_000;

/** A transaction that nft is working on. */
export interface NftRun {
  /** Waits for its end. Throws NftError; then nothing was done. */
  wait(): void;
  [Symbol.dispose](): void;
}

/**
 * Starts one transaction: all of the statements are done, or none. nft keeps `lock`, a descriptor, open until it ends.
 * Throws NftError when there is no nft.
 */
export function startNft(statements: readonly NftText[], lock?: number): NftRun {
  const tool = startTool("nft", ["-f", "-"], `${statements.join("\n")}\n`, timeoutMs, lock);
  if ("missing" in tool) throw nftMissing(tool.missing);
  return {
    wait() {
      const { exitCode, signal, stderr, timedOut } = tool.wait();
      if (timedOut) throw new NftError("failed", `nft did not end within ${timeoutMs / 1000} seconds`);
      if (signal !== undefined) throw new NftError("failed", `nft was ended by signal ${signal}`);
      if (exitCode !== 0) throw nftErrorOf(stderr);
    },
    [Symbol.dispose]: () => tool[Symbol.dispose](),
  };
}

/** One transaction. Nothing to do starts nothing. Throws NftError; then nothing was done. */
export function runNft(statements: readonly NftText[]): void {
  if (statements.length > 0) startNft(statements).wait();
}
