/** A value as `--json` prints it: four spaces of indent, as CNI results have, and a newline at the end. */
export const jsonText = (value: unknown): string => `${JSON.stringify(value, null, 4)}\n`;
