import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";

const root = join(import.meta.dirname, "../..");
const pages = globSync(["*.md", "docs/**/*.md", "pkg/*/*.md", "plugins/*/*/*.md", "test/*/*.md"], {
  cwd: root,
});

/** Links to files, without those to places on the web and within the page. */
const linksIn = (text: string): string[] =>
  [...text.matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g)].map(([, to]) => to!).filter((to) => !/^\w+:/.test(to));

/** What stands in backquotes and begins as a path of this repository, without patterns. */
const pathsIn = (text: string): string[] =>
  [...text.matchAll(/`((?:pkg|plugins|scripts|examples|docs|test)\/[\w./-]+)`/g)].map(([, path]) => path!);

test.each(pages)("%s leads to files that exist", (page) => {
  const text = readFileSync(join(root, page), "utf8");
  const missing = [
    ...linksIn(text).filter((to) => !existsSync(join(root, dirname(page), to))),
    ...pathsIn(text).filter((path) => !existsSync(join(root, path))),
  ];
  expect(missing).toEqual([]);
});
