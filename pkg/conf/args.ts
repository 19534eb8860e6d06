import { CniError, ErrorCode } from "@tscni/types";

/**
 * Reads CNI_ARGS, `K=V;K2=V2`, for a plugin that knows the given keys (case matters). As in Go's library:
 * every pair has exactly one "=", and unknown keys are an error unless `IgnoreUnknown` is 1 or true.
 */
export function parseCniArgs<K extends string>(
  args: string,
  known: readonly K[],
): Partial<Record<K, string>> {
  if (args === "") return {};
  const values: Partial<Record<string, string>> = {};
  const unknown: string[] = [];
  for (const pair of args.split(";")) {
    const [key, value, ...rest] = pair.split("=");
    if (key === undefined || value === undefined || rest.length > 0) throw wrong(`invalid pair "${pair}"`);
    if ((known as readonly string[]).includes(key) || key === "IgnoreUnknown") values[key] = value;
    else unknown.push(pair);
  }
  const ignore = values.IgnoreUnknown?.toLowerCase();
  if (unknown.length > 0 && ignore !== "1" && ignore !== "true")
    throw wrong(`unknown args [${unknown.map((pair) => JSON.stringify(pair)).join(" ")}]`);
  return values as Partial<Record<K, string>>;
}

const wrong = (text: string) => new CniError(ErrorCode.InvalidEnvironmentVariables, `ARGS: ${text}`);
