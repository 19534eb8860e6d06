import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fails, prints } from "../libcni/testing/lab.ts";
import type { NetworkingEvent } from "./index.ts";
import { failureOf, NetworkingLab, stopWhen } from "./testing.ts";

let lab: NetworkingLab;
beforeEach(() => {
  lab = new NetworkingLab();
});
afterEach(() => lab.close());

describe.skipIf(process.platform === "win32")("taking back and away", () => {
  test("a second setup fails and leaves what the first one made", async () => {
    const both = lab.twoNetworks();
    await both.setup("c", "/netns");
    for (const name of ["alpha", "beta"]) lab.plugin(name, { ADD: fails(4, "exists already") });
    lab.calls();
    expect((await failureOf(both.setup("c", "/netns"))).code).toBe("setup-failed");
    expect(lab.verbs().sort()).toEqual(["ADD alpha", "ADD beta"]);
    expect(both.attachments("c").attachments).toHaveLength(2);
  });

  test("a setup on more networks takes back only what is new", async () => {
    const both = lab.twoNetworks();
    const list = JSON.stringify({ cniVersion: "1.1.0", name: "other", plugins: [{ type: "gamma" }] });
    lab.plugin("gamma", { ADD: fails(7, "no") });
    await both.setup("c", "/netns");
    both.load({ list });
    lab.calls();
    await failureOf(both.setup("c", "/netns"));
    expect(lab.verbs()).toEqual(["ADD gamma", "DEL gamma"]);
    expect(both.attachments("c").attachments.map(({ network }) => network)).toEqual(["a", "b"]);
  });

  test("taking back has a limit of its own", async () => {
    const both = lab.twoNetworks({ ADD: fails(7, "no"), DEL: "exec sleep 60" }, { rollbackTimeoutMs: 300 });
    const events: NetworkingEvent[] = [];
    both.subscribe((event) => events.push(event));
    const begin = performance.now();
    const error = await failureOf(both.setup("c", "/netns"));
    expect(performance.now() - begin).toBeLessThan(20_000);
    expect(error.failures.map(({ network }) => network)).toEqual(["b"]);
    const back = events.find((event) => event.type === "rolled-back")!;
    // The DEL of b was killed, that of a was not begun any more; GC finds both.
    expect(back).toMatchObject({ failures: [{ network: "b" }, { network: "a" }] });
    expect(both.attachments("c").attachments).toHaveLength(2);
  });

  test("a config that was changed since: what it added is deleted by the plugins that it had", async () => {
    const both = lab.twoNetworks();
    await both.setup("c", "/netns");
    lab.plugin("gamma");
    lab.conflist("b", "gamma");
    both.load("directory");
    lab.calls();
    await both.remove("c");
    expect(lab.verbs()).toEqual(["DEL beta", "DEL alpha"]);
    expect(both.attachments().attachments).toEqual([]);
  });

  test("a remove that is stopped begins no other DEL and says so", async () => {
    const mark = join(lab.dir, "begun");
    const both = lab.twoNetworks({ DEL: `touch ${mark}; exec sleep 60` });
    await both.setup("c", "/netns");
    lab.calls();
    const error = await failureOf(both.remove("c", "/netns", { signal: stopWhen(mark) }));
    expect(error.failures.map(({ network }) => network)).toEqual(["b", "a"]);
    expect(error.failures[1]!.error.message).toContain("not removed: the caller stopped it before");
    expect(lab.verbs()).toEqual(["DEL beta"]);
    lab.plugin("beta");
    // The signal that ended the work is often the one that clean-up gets.
    await both.remove("c", "/netns", { signal: AbortSignal.abort(), timeoutMs: 0 });
    expect(both.attachments().attachments).toEqual([]);
  });

  test("a process's number in a remembered path may be another's by now", async () => {
    const both = lab.twoNetworks();
    await both.setup("c", "/proc/4711/ns/net");
    await both.setup("d", "/proc/4712/ns/net");
    await both.setup("e", "/proc/4713/ns/net");
    lab.calls();
    await both.remove("c");
    await both.remove("d", "/proc/4712/ns/net");
    await both.gc([]);
    const deletes = lab.calls().filter(({ verb }) => verb === "DEL");
    expect([...new Set(deletes.map(({ containerId, netns }) => `${containerId} ${netns}`))]).toEqual([
      "c ",
      "d /proc/4712/ns/net",
      "e ",
    ]);
  });

  test("gc keeps what was being set up when it was called, and asks for the living when it is alone", async () => {
    const both = lab.twoNetworks({ ADD: `sleep 0.2; ${prints({ cniVersion: "1.1.0" })}` });
    const alive = new Set<string>();
    const start = async (id: string) => {
      await both.setup(id, "/netns");
      alive.add(id);
    };
    const ids = () => new Set(both.attachments().attachments.map(({ containerId }) => containerId));
    const young = start("young");
    await both.gc([]);
    await young;
    expect(ids()).toEqual(new Set(["young"]));
    const other = start("other");
    await both.gc(() => Promise.resolve(alive));
    await other;
    expect(ids()).toEqual(new Set(["young", "other"]));
    await expect(
      both.gc(() => {
        throw new Error("no list today");
      }),
    ).rejects.toThrow("no list today");
    expect((await failureOf(both.gc(() => [""]))).code).toBe("invalid-argument");
    alive.delete("young");
    await both.gc(() => alive);
    expect(ids()).toEqual(new Set(["other"]));
  });

  test("a gc that is stopped begins no other plugin, says so, and the next one finishes it", async () => {
    const both = lab.twoNetworks();
    await both.setup("c", "/netns");
    const mark = join(lab.dir, "begun");
    lab.plugin("alpha", { DEL: `touch ${mark}; exec sleep 60` });
    lab.calls();
    const error = await failureOf(both.gc([], { signal: stopWhen(mark) }));
    expect(error.code).toBe("gc-failed");
    expect(new Set(error.failures.map(({ network }) => network))).toEqual(new Set(["a", "b"]));
    expect(lab.verbs()).not.toContain("DEL beta");
    lab.plugin("alpha");
    expect((await both.gc([])).deleted).toHaveLength(2);
    expect(both.attachments().attachments).toEqual([]);
  });

  test("events wait for who asked for the stream, and the stream can be left", async () => {
    const both = lab.twoNetworks();
    const stream = both.events();
    await both.setup("c", "/netns");
    await both.remove("c");
    for await (const event of stream) {
      expect(event.type).toBe("setup");
      break;
    }
    expect(await stream.next()).toEqual({ done: true, value: undefined });
    const end = new AbortController();
    const waiting = both.events(end.signal).next();
    end.abort();
    expect(await waiting).toEqual({ done: true, value: undefined });
  });
});
