import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Networking, type NetworkingEvent } from "./index.ts";

let dir: string;
let configDir: string;
let end = () => {};
let networking: Networking;
const events: NetworkingEvent[] = [];

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "tscni-watch-"));
  configDir = join(dir, "net.d");
  mkdirSync(configDir);
  events.length = 0;
  networking = new Networking({ configDir, cacheDir: join(dir, "cache"), maxConfigs: 0 });
  networking.subscribe((event) => events.push(event));
});
afterEach(() => {
  end();
  rmSync(dir, { recursive: true, force: true });
});

const conflist = (name: string) => JSON.stringify({ cniVersion: "1.1.0", name, plugins: [{ type: "x" }] });
const put = (file: string, name: string) => writeFileSync(join(configDir, file), conflist(name));
const names = () => networking.networks.map(({ name }) => name);

/** The next event of a type after those seen so far. */
async function next(type: NetworkingEvent["type"]): Promise<NetworkingEvent> {
  for (const deadline = Date.now() + 20_000; Date.now() < deadline; ) {
    const found = events.find((event) => event.type === type);
    if (found) {
      events.length = 0;
      return found;
    }
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`no event ${type} within 20 s`);
}

function watch(pollMs = 60_000): void {
  end = networking.watch(["directory"], { settleMs: 20, pollMs });
}

test("files made, written, renamed and deleted, an event each", async () => {
  watch();
  expect(names()).toEqual([]);
  await next("networks");
  put("a.conflist", "one");
  await next("networks");
  expect(names()).toEqual(["one"]);
  put("a.conflist", "other");
  await next("networks");
  expect(names()).toEqual(["other"]);
  put("unfinished.tmp", "second");
  renameSync(join(configDir, "unfinished.tmp"), join(configDir, "b.conflist"));
  await next("networks");
  expect(names()).toEqual(["other", "second"]);
  rmSync(join(configDir, "a.conflist"));
  await next("networks");
  expect(names()).toEqual(["second"]);
});

test("a broken file is told, and the last good networks stay until it is mended", async () => {
  put("a.conflist", "good");
  watch();
  await next("networks");
  writeFileSync(join(configDir, "a.conflist"), '{"cniVersion"');
  const broken = await next("config-broken");
  expect(broken).toMatchObject({ error: { code: "invalid-config" } });
  expect(names()).toEqual(["good"]);
  put("a.conflist", "mended");
  await next("networks");
  expect(names()).toEqual(["mended"]);
});

test("a folder swapped behind a link, as Kubernetes does it", async () => {
  for (const version of ["v1", "v2"]) {
    mkdirSync(join(configDir, `..${version}`));
    writeFileSync(join(configDir, `..${version}`, "a.conflist"), conflist(version));
  }
  symlinkSync("..v1", join(configDir, "..data"));
  symlinkSync("..data/a.conflist", join(configDir, "a.conflist"));
  watch();
  expect(names()).toEqual(["v1"]);
  await next("networks");
  symlinkSync("..v2", join(configDir, "..data_tmp"));
  renameSync(join(configDir, "..data_tmp"), join(configDir, "..data"));
  await next("networks");
  expect(names()).toEqual(["v2"]);
});

test("the folder itself removed and made again, more than once", async () => {
  put("a.conflist", "first");
  watch();
  await next("networks");
  for (const name of ["second", "third"]) {
    rmSync(configDir, { recursive: true });
    await next("networks");
    expect(names()).toEqual([]);
    mkdirSync(configDir);
    put("a.conflist", name);
    await next("networks");
    // The folder and the file may have come as one change or as two.
    while (names().length === 0) await next("networks");
    expect(names()).toEqual([name]);
  }
});

test("a folder that is not there yet, nor the one above it, is found by looking", async () => {
  configDir = join(dir, "etc/cni/net.d");
  networking = new Networking({ configDir, cacheDir: join(dir, "cache") });
  networking.subscribe((event) => events.push(event));
  watch(50);
  await next("networks");
  mkdirSync(configDir, { recursive: true });
  put("a.conflist", "late");
  while (names().length === 0) await next("networks");
  expect(names()).toEqual(["late"]);
});

test("plugins dropped in beside a conflist count", async () => {
  put("a.conflist", "base");
  mkdirSync(join(configDir, "base"));
  watch();
  await next("networks");
  writeFileSync(join(configDir, "base/more.conf"), '{"type":"y"}');
  while (networking.networks[0]!.list.plugins.length < 2) {
    // The folder of drop-ins gives no event of its own.
    await new Promise((resolve) => setTimeout(resolve, 20));
    put("a.conflist", "base");
  }
  expect(networking.networks[0]!.list.plugins.map(({ type }) => type)).toEqual(["x", "y"]);
});

test("what has ended tells nothing more", async () => {
  watch();
  await next("networks");
  end();
  put("a.conflist", "one");
  await new Promise((resolve) => setTimeout(resolve, 200));
  expect(events).toEqual([]);
});
