/**
 * A key that stands twice in an object named `name`, at any depth of a JSON text that is known to be right;
 * undefined when there is none. JSON.parse keeps the last of them and says nothing.
 */
export function repeatedKey(text: string, name: string): string | undefined {
  /** For each object and list around the place: the keys seen, where they count. */
  const around: (Set<string> | undefined)[] = [];
  let lastKey = "";
  for (let at = 0; at < text.length; at++) {
    const c = text[at];
    if (c === "{" || c === "[") {
      around.push(c === "{" && lastKey.toLowerCase() === name ? new Set() : undefined);
      lastKey = "";
    } else if (c === "}" || c === "]") {
      around.pop();
    } else if (c === '"') {
      const end = endOfString(text, at);
      if (isKey(text, end)) {
        lastKey = JSON.parse(text.slice(at, end)) as string;
        const keys = around.at(-1);
        if (keys?.has(lastKey)) return lastKey;
        keys?.add(lastKey);
      } else {
        lastKey = "";
      }
      at = end - 1;
    }
  }
  return undefined;
}

/** Where the string that begins at `at` has ended. */
function endOfString(text: string, at: number): number {
  let end = at + 1;
  while (end < text.length && text[end] !== '"') end += text[end] === "\\" ? 2 : 1;
  return end + 1;
}

function isKey(text: string, end: number): boolean {
  while (text[end] === " " || text[end] === "\t" || text[end] === "\n" || text[end] === "\r") end++;
  return text[end] === ":";
}
