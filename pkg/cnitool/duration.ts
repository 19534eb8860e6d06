import { UsageError } from "./flags.ts";

const milliseconds: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/**
 * `30s`, `1.5m`, `500ms`, `2h` or plain seconds, in milliseconds. Throws UsageError for anything else, for 0
 * and for more than a day.
 */
export function parseDuration(text: string): number {
  const match = /^(\d{1,9}(?:\.\d{1,3})?)(ms|s|m|h)?$/.exec(text);
  const ms = match ? Math.round(Number(match[1]) * milliseconds[match[2] ?? "s"]!) : 0;
  if (ms < 1 || ms > 86_400_000)
    throw new UsageError(
      `invalid argument "${text}" for --timeout: expected a duration such as 30s, 500ms or 2m`,
    );
  return ms;
}
