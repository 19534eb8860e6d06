import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inside, makeNamespace, type TestNamespace } from "@tscni/test-support";
import { afterAll, afterEach, beforeEach, describe, expect, test } from "vitest";
import { address, elementsOf, listNft, NftError, nft, quoted, runNft, startNft } from "./index.ts";

const path = process.env.PATH;
afterAll(() => {
  process.env.PATH = path;
});

let host: TestNamespace;
beforeEach(() => {
  host = makeNamespace("host");
  process.env.PATH = path;
});
afterEach(() => host.close());

const failure = (work: () => unknown): NftError => {
  try {
    inside(host, work);
  } catch (error) {
    if (error instanceof NftError) return error;
    throw error;
  }
  throw new Error("no failure");
};

const base = [
  nft`add table inet t`,
  nft`add chain inet t c`,
  nft`add map inet t m { type ipv4_addr : verdict; }`,
  nft`add map inet t p { type ipv4_addr . inet_service : ipv4_addr . inet_service; }`,
];
const hostile = 'a"; flush ruleset; add table ip x; #\n\\';

test("elements with comments of any text are read back", () => {
  inside(host, () => {
    runNft([
      ...base,
      nft`add element inet t m { ${address("10.1.0.5")} comment ${quoted(hostile)} : goto c }`,
      nft`add element inet t p { ${address("10.1.0.5")} . ${80} : ${address("10.2.0.5")} . ${8080} }`,
    ]);
    const listing = listNft(nft`table inet t`)!;
    expect(elementsOf(listing, "m")).toEqual([
      { key: "10.1.0.5", data: { goto: { target: "c" } }, comment: String(quoted(hostile)).slice(1, -1) },
    ]);
    expect(elementsOf(listing, "p")).toEqual([
      { key: ["10.1.0.5", 80], data: { concat: ["10.2.0.5", 8080] }, comment: undefined },
    ]);
    expect(elementsOf(listing, "nonesuch")).toEqual([]);
    expect(listNft(nft`table inet other`)).toBeUndefined();
  });
  expect(host.run("nft", "list", "tables")).toBe("table inet t\n");
});

test("a transaction is done whole or not at all, and says what was wrong", () => {
  inside(host, () => runNft([...base, nft`add element inet t m { 10.1.0.5 : goto c }`]));
  const before = host.run("nft", "list", "ruleset");
  const first = nft`add element inet t m { 10.9.9.9 : accept }`;
  for (const [bad, problem] of [
    [nft`delete element inet t m { 10.1.0.6 }`, "absent"],
    [nft`add element inet t m { 10.1.0.5 : accept }`, "exists"],
    [nft`delete chain inet t c`, "busy"],
    [nft`add element inet nonesuch m { 10.1.0.5 : accept }`, "absent"],
    [nft`no language of nft`, "failed"],
  ] as const) {
    const error = failure(() => runNft([first, bad]));
    expect([error.problem, error.unusable]).toEqual([problem, false]);
    expect(error.msg).toMatch(/^nft: .*Error/i);
    expect(host.run("nft", "list", "ruleset")).toBe(before);
  }
});

test("transactions side by side", () => {
  inside(host, () => {
    runNft(base);
    const runs = ["10.1.0.5", "10.1.0.6"].map((text) =>
      startNft([nft`add element inet t m { ${address(text)} : accept }`]),
    );
    for (const run of runs) run.wait();
    expect(elementsOf(listNft(nft`table inet t`)!, "m")).toHaveLength(2);
  });
});

describe("what can't work says why", () => {
  test.each([
    ["echo 'Error: syntax error' >&2; exit 1", "failed", /^nft: Error: syntax error$/],
    ["kill -9 $$", "failed", /ended by signal 9/],
    ["exit 1", "failed", /^nft: no message$/],
    ["echo 'Operation not permitted (you must be root)' >&2; exit 1", "unusable", /CAP_NET_ADMIN/],
  ] as const)("%s", (script, problem, message) => {
    const folder = mkdtempSync(join(tmpdir(), "tscni-nft-"));
    writeFileSync(join(folder, "nft"), `#!/bin/sh\n${script}\n`);
    chmodSync(join(folder, "nft"), 0o755);
    process.env.PATH = `${folder}:${path}`;
    const error = failure(() => runNft(base));
    expect(error.problem).toBe(problem);
    expect(error.msg).toMatch(message);
  });
});
