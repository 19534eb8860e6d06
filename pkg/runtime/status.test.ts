import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fails } from "../libcni/testing/lab.ts";
import type { Networking, NetworkingEvent } from "./index.ts";
import { failureOf, NetworkingLab, stopWhen } from "./testing.ts";

let lab: NetworkingLab;
beforeEach(() => {
  lab = new NetworkingLab();
});
afterEach(() => lab.close());

/** What is told of being ready, from now on. */
function told(networking: Networking): string[] {
  const seen: string[] = [];
  networking.subscribe((event: NetworkingEvent) => {
    if (event.type === "status") seen.push(event.ready ? "ready" : event.error.code);
  });
  return seen;
}

describe.skipIf(process.platform === "win32")("status", () => {
  test("is that of all plugins, names who is not ready, and blocks nothing", async () => {
    const both = lab.twoNetworks({ STATUS: fails(50, "no addresses left") });
    const error = await failureOf(both.status());
    expect(error.code).toBe("not-ready");
    expect(error.failures).toMatchObject([{ network: "b", plugin: "beta", error: { code: 50 } }]);
    await both.setup("c", "/netns");
    await both.remove("c", "/netns");
    lab.plugin("beta");
    await both.status();
  });

  test("callers that come together share one round; one of them can give up", async () => {
    const both = lab.twoNetworks({ STATUS: "sleep 0.3" });
    const patient = both.status();
    await expect(both.status({ timeoutMs: 20 })).rejects.toMatchObject({ name: "TimeoutError" });
    await Promise.all([patient, both.status(), both.status()]);
    expect(lab.verbs().sort()).toEqual(["STATUS alpha", "STATUS beta"]);
    await both.status();
    expect(lab.verbs().sort()).toEqual(["STATUS alpha", "STATUS beta"]);
  });

  test("a round that nobody waits for any more ends: the next caller does not get what hangs", async () => {
    const mark = join(lab.dir, "asked");
    const both = lab.twoNetworks({ STATUS: `if mkdir ${mark}; then exec sleep 60; fi` });
    await expect(both.status({ signal: stopWhen(mark) })).rejects.toMatchObject({ name: "AbortError" });
    await both.status({ timeoutMs: 10_000 });
    await expect(both.status({ signal: AbortSignal.abort(new Error("never mind")) })).rejects.toThrow(
      "never mind",
    );
  });

  test("after other networks were loaded it is that of those", async () => {
    const both = lab.twoNetworks({ STATUS: `sleep 0.3; ${fails(50, "not yet")}` });
    const before = failureOf(both.status());
    const seen = told(both);
    lab.plugin("gamma");
    both.load({ list: '{"cniVersion":"1.1.0","name":"c","plugins":[{"type":"gamma"}]}' });
    await both.status();
    expect((await before).code).toBe("not-ready");
    expect(seen).toEqual(["ready"]);
  });

  test("a change is told, once", async () => {
    const both = lab.twoNetworks();
    const seen = told(both);
    await both.status();
    await both.status();
    expect(seen.splice(0)).toEqual(["ready"]);
    lab.plugin("beta", { STATUS: fails(50, "no addresses left") });
    await failureOf(both.status());
    await failureOf(both.status());
    expect(seen.splice(0)).toEqual(["not-ready"]);
    both.load();
    await failureOf(both.status());
    expect(seen.splice(0)).toEqual(["not-initialized"]);
  });
});
