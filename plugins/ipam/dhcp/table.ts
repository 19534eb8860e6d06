import type { LeaseView } from "./protocol.ts";

const columns: readonly [title: string, (lease: LeaseView) => string][] = [
  ["NETWORK", ({ network }) => network],
  [
    "CONTAINER",
    ({ containerId }) => (containerId.length > 16 ? `${containerId.slice(0, 13)}...` : containerId),
  ],
  ["INTERFACE", ({ ifName }) => ifName],
  ["ADDRESS", ({ address }) => address ?? "-"],
  ["STATE", ({ state }) => state],
  ["SERVER", ({ server }) => server ?? "-"],
  ["RENEWS", ({ address, renewsIn }) => timeText(address, renewsIn)],
  ["EXPIRES", ({ address, expiresIn }) => timeText(address, expiresIn)],
];

/** Columns for people; a lease with a problem has it on a line of its own. */
export function tableOf(leases: readonly LeaseView[]): string {
  if (leases.length === 0) return "no leases";
  const rows = [
    columns.map(([title]) => title),
    ...leases.map((lease) => columns.map(([, text]) => text(lease))),
  ];
  const widths = columns.map((_, i) => Math.max(...rows.map((row) => row[i]!.length)));
  return rows
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i]!))
        .join("  ")
        .trimEnd(),
    )
    .map((line, i) => (leases[i - 1]?.problem === undefined ? line : `${line}\n  ${leases[i - 1]!.problem}`))
    .join("\n");
}

function timeText(address: string | undefined, seconds: number | undefined): string {
  if (address === undefined) return "-";
  if (seconds === undefined) return "never";
  if (seconds <= 0) return "now";
  const parts = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "m"],
    [seconds % 60, "s"],
  ] as const;
  const first = parts.findIndex(([count]) => count > 0);
  return parts
    .slice(first, first + 2)
    .map(([count, unit]) => `${count}${unit}`)
    .join("");
}
