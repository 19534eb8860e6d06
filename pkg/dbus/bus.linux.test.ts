import { join } from "node:path";
import { startBus, type TestBus, temporaryFolder } from "@tscni/test-support";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DbusError, openSystemBus } from "./index.ts";

let bus: TestBus;
let folder: ReturnType<typeof temporaryFolder>;
const before = process.env.DBUS_SYSTEM_BUS_ADDRESS;
beforeEach(async (test) => {
  folder = temporaryFolder();
  bus = (await startBus()) ?? test.skip("no dbus-daemon: install the package dbus-daemon");
  process.env.DBUS_SYSTEM_BUS_ADDRESS = bus.address;
});
afterEach(async () => {
  if (before === undefined) delete process.env.DBUS_SYSTEM_BUS_ADDRESS;
  else process.env.DBUS_SYSTEM_BUS_ADDRESS = before;
  folder.remove();
  await bus?.close();
});

const daemon = {
  destination: "org.freedesktop.DBus",
  path: "/org/freedesktop/DBus",
  interface: "org.freedesktop.DBus",
};
const failure = (work: () => unknown): DbusError => {
  try {
    work();
  } catch (error) {
    if (error instanceof DbusError) return error;
    throw error;
  }
  throw new Error("no failure");
};

describe("with a real dbus-daemon", () => {
  test("calls return strings, booleans, numbers and lists", () => {
    using connection = openSystemBus()!;
    const call = (member: string, ...args: string[]) => connection.call({ ...daemon, member, args });
    expect(connection.hasOwner("org.freedesktop.DBus")).toBe(true);
    expect(connection.hasOwner("org.fedoraproject.FirewallD1")).toBe(false);
    expect(call("GetConnectionUnixProcessID", "org.freedesktop.DBus")[0]).toBeGreaterThan(1);
    expect(call("ListNames")).toEqual([["org.freedesktop.DBus", expect.stringMatching(/^:/)]]);
    expect(call("GetId")[0]).toMatch(/^[0-9a-f]{32}$/);
  });

  test("an error comes with its name and text", () => {
    using connection = openSystemBus()!;
    const unknown = () => connection.call({ ...daemon, destination: "org.nobody", member: "Ping", args: [] });
    expect(failure(unknown)).toMatchObject({
      error: expect.stringMatching(/^org\.freedesktop\.DBus\.Error\.(ServiceUnknown|NameHasNoOwner)$/),
      msg: expect.stringContaining("org.freedesktop.DBus.Ping: "),
    });
    expect(connection.hasOwner("org.freedesktop.DBus"), "the connection is good for more").toBe(true);
  });

  test.each([
    ["longer than any buffer", "x".repeat(70_000)],
    ["of more than one byte a letter", "äöü€"],
    ["that would be hostile elsewhere", "a\r\nBEGIN\r\n'\";$(id)\\"],
    ["of nothing", ""],
  ])("text %s arrives as it is", (_, text) => {
    using connection = openSystemBus()!;
    // The daemon quotes the name that it does not know.
    const ask = () => connection.call({ ...daemon, member: "GetNameOwner", args: [text] });
    expect(failure(ask).msg).toContain(`'${text}'`);
    expect(connection.hasOwner(text)).toBe(false);
    expect(connection.hasOwner("org.freedesktop.DBus")).toBe(true);
  });

  test("text with a NUL is refused before it is sent", () => {
    using connection = openSystemBus()!;
    expect(failure(() => connection.hasOwner("a\0b")).msg).toContain("has a NUL");
    expect(connection.hasOwner("org.freedesktop.DBus")).toBe(true);
  });

  test("a daemon that goes in the middle is a sentence", async () => {
    using connection = openSystemBus()!;
    await bus.kill();
    expect(failure(() => connection.hasOwner("a.b")).msg).toMatch(/closed the connection|broken pipe/i);
    expect(openSystemBus(), "the socket is left, and nobody listens").toBeUndefined();
  });
});

test("no socket is no bus, and not an error", () => {
  process.env.DBUS_SYSTEM_BUS_ADDRESS = `unix:path=${folder.path}/none`;
  expect(openSystemBus()).toBeUndefined();
  process.env.DBUS_SYSTEM_BUS_ADDRESS = "tcp:host=localhost,port=1";
  expect(openSystemBus()).toBeUndefined();
});

/** Something else that listens where a bus is expected; `answer` is what it makes of what it gets. */
async function listen(answer: (text: string) => string | undefined): Promise<{ kill(): void }> {
  const path = join(folder.path, "other");
  process.env.DBUS_SYSTEM_BUS_ADDRESS = `unix:path=${path}`;
  const source = `const answer = ${answer};
    require("node:net").createServer((s) => s.on("error", () => {}).on("data", (data) => {
      const text = answer(data.toString("latin1"));
      if (text === undefined) s.end(); else s.write(text, "latin1");
    })).listen(${JSON.stringify(path)}, () => console.log("ready"));`;
  const server = Bun.spawn([process.execPath, "-e", source], { stdout: "pipe" });
  await server.stdout.getReader().read();
  return server;
}

const answers: [string, (text: string) => string | undefined, RegExp][] = [
  ["says nothing", () => "", /no answer within 0.3 seconds/],
  [
    "refuses",
    (text) => (text.includes("AUTH") ? "REJECTED EXTERNAL\r\n" : ""),
    /refuses us: REJECTED EXTERNAL/,
  ],
  ["hangs up", () => undefined, /closed the connection/],
  ["says nothing to hello", (text) => (text.includes("AUTH") ? "OK 0\r\n" : ""), /no answer within/],
  [
    "speaks big-endian",
    (text) => (text.includes("AUTH") ? `OK 0\r\n${"B".repeat(64)}` : ""),
    /little-endian/,
  ],
  [
    "announces too much",
    (text) => (text.includes("AUTH") ? `OK 0\r\nl${"\xff".repeat(63)}` : ""),
    /message of \d+ bytes/,
  ],
];
test.each(answers)("a bus that %s", async (_, answer, message) => {
  const server = await listen(answer);
  try {
    expect(failure(() => openSystemBus(300)).msg).toMatch(message);
  } finally {
    server.kill();
  }
});
