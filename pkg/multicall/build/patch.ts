/**
 * Environment variables by which Bun runs other code, becomes another program, or writes files where they say.
 * No flag turns them off and our own first line comes too late, so their names are taken out of the base
 * binary. test/executable tries every BUN_ and NODE_ name that the result still contains.
 */
export const disarmedNames = [
  "BUN_OPTIONS", // command-line options; --preload runs code
  "BUN_BE_BUN", // the executable becomes the bun command
  "BUN_INSPECT", // opens a debugger
  "BUN_INSPECT_CONNECT_TO",
  "BUN_INSPECT_NOTIFY",
  "BUN_INSPECT_PRELOAD", // runs code
  "BUN_BYTECODE_DIGEST_OUT", // write files
  "BUN_BYTECODE_ORDER_OUT",
  "BUN_BYTECODE_ORDER_NAMES_OUT",
  "BUN_CONFIG_MAX_HTTP_REQUESTS", // complains of a wrong value on stderr
  "NODE_CHANNEL_FD", // takes a descriptor for a channel to the parent; also inherited by accident
] as const;

/**
 * The bytes with the first letter of every occurrence of the names replaced by a NUL, which no variable's name
 * can contain; in the JavaScript that is built into Bun, by a letter, so that it stays valid.
 * Throws when a name is not there: another version of Bun calls for another look at what it obeys.
 */
export function disarm(binary: Buffer, names: readonly string[] = disarmedNames): Buffer {
  const patched = Buffer.from(binary);
  const missing = names.filter((name) => replaceFirstLetters(patched, name, names) === 0);
  if (missing.length > 0) {
    throw new Error(
      `the base binary does not contain ${missing.join(", ")}: find out what this version of Bun reads instead`,
    );
  }
  return patched;
}

/** Returns how often the name stood there by itself, not as the beginning of another of the names. */
function replaceFirstLetters(binary: Buffer, name: string, names: readonly string[]): number {
  const longer = names.filter((other) => other !== name && other.startsWith(name));
  let count = 0;
  for (let at = binary.indexOf(name); at !== -1; at = binary.indexOf(name, at + 1)) {
    if (longer.some((other) => binary.toString("latin1", at, at + other.length) === other)) continue;
    const inSource = /[.\s"'=]/.test(String.fromCharCode(binary[at - 1]!));
    binary[at] = inSource ? "_".charCodeAt(0) : 0;
    count++;
  }
  return count;
}
