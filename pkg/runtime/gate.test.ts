import { describe, expect, test } from "vitest";
import { Gate } from "./gate.ts";

/** Work that ends when it is told to. */
function work() {
  let end: () => void = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  return { end, ended };
}

/** Time for everything to run that can. */
const settle = () => new Promise((resolve) => setTimeout(resolve, 5));

/** A gate, and a log of what has begun. */
function gateWithLog() {
  const gate = new Gate();
  const begun: string[] = [];
  const enter = (name: string, container: string | undefined, ended: Promise<void>, signal?: AbortSignal) =>
    gate.run(container, signal, () => {
      begun.push(name);
      return ended;
    });
  return { begun, enter };
}

describe("gate", () => {
  test("one container's operations in order of arrival, others beside them", async () => {
    const { begun, enter } = gateWithLog();
    const [first, second] = [work(), work()];
    const all = [
      enter("a1", "a", first.ended),
      enter("a2", "a", second.ended),
      enter("b1", "b", second.ended),
    ];
    await settle();
    expect(begun).toEqual(["a1", "b1"]);
    first.end();
    await settle();
    expect(begun).toEqual(["a1", "b1", "a2"]);
    second.end();
    await Promise.all(all);
  });

  test("who is alone waits for all that came before, and all that come after wait for it", async () => {
    const { begun, enter } = gateWithLog();
    const [before, alone, after] = [work(), work(), work()];
    const all = [
      enter("a", "a", before.ended),
      enter("gc", undefined, alone.ended),
      enter("b", "b", after.ended),
      enter("a2", "a", after.ended),
    ];
    await settle();
    expect(begun).toEqual(["a"]);
    before.end();
    await settle();
    expect(begun).toEqual(["a", "gc"]);
    alone.end();
    await settle();
    expect(begun).toEqual(["a", "gc", "b", "a2"]);
    after.end();
    await Promise.all(all);
  });

  test("who gives up waiting lets those behind pass, and has begun nothing", async () => {
    const { begun, enter } = gateWithLog();
    const first = work();
    const stop = new AbortController();
    const one = enter("a", "a", first.ended);
    const given = enter("gc", undefined, Promise.resolve(), stop.signal);
    const behind = enter("b", "b", Promise.resolve());
    await settle();
    expect(begun).toEqual(["a"]);
    stop.abort(new Error("enough"));
    await expect(given).rejects.toThrow("enough");
    await behind;
    expect(begun).toEqual(["a", "b"]);
    first.end();
    await one;
    await expect(enter("c", "c", Promise.resolve(), stop.signal)).rejects.toThrow("enough");
    expect(begun).not.toContain("c");
  });

  test("work that throws leaves, too; a signal that fires inside is the work's own affair", async () => {
    const { begun, enter } = gateWithLog();
    await expect(enter("a1", "a", Promise.reject(new Error("no")))).rejects.toThrow("no");
    const [inside, stop] = [work(), new AbortController()];
    const running = enter("a2", "a", inside.ended, stop.signal);
    const next = enter("a3", "a", Promise.resolve());
    await settle();
    stop.abort();
    await settle();
    expect(begun).toEqual(["a1", "a2"]);
    inside.end();
    await Promise.all([running, next]);
  });

  test("a crowd: no two on one container, none beside who is alone, and all come to their turn", async () => {
    const gate = new Gate();
    const inside: (string | undefined)[] = [];
    let turns = 0;
    const visit = (container: string | undefined) =>
      gate.run(container, undefined, async () => {
        expect(inside).not.toContain(container);
        expect(inside).not.toContain(undefined);
        if (container === undefined) expect(inside).toEqual([]);
        inside.push(container);
        await new Promise((resolve) => setTimeout(resolve, turns++ % 3));
        inside.splice(inside.indexOf(container), 1);
      });
    await Promise.all(
      Array.from({ length: 300 }, (_, i) => visit(i % 23 === 0 ? undefined : `c${(i * 7) % 11}`)),
    );
    expect(turns).toBe(300);
  });
});
