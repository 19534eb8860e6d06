import { makeNode, type TestNode } from "@tscni/test-support";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  call,
  expectError,
  expectNoTrace,
  expectSilence,
  goodConf,
  inParallel,
  plugins,
  verbs,
} from "./call.ts";

let node: TestNode;
beforeAll(() => {
  node = makeNode();
});
afterAll(() => node.close());

const many = (text: string, count: number): string => text.repeat(count);
const deep = (count: number): string => `${many("[", count)}${many("]", count)}`;

const noJson: [string, string | Uint8Array][] = [
  ["empty", ""],
  ["white space", " \n\t"],
  ["NUL bytes", new Uint8Array(100)],
  ["bytes that are no UTF-8", new Uint8Array([0xff, 0xfe, 0x80, 0xc0])],
  ["10 MB of nothing", many(" ", 10 << 20)],
  ["10 MB of brackets", many("[", 10 << 20)],
  ["10 MB of a text that never ends", `{"name":"${many("x", 10 << 20)}`],
  ["a config twice", '{"name":"a"}{"name":"a"}'],
  ["a comment", '{"name":"a"} // b'],
  ["a list", "[]"],
  ["a deep list", deep(1e6)],
  ["null", "null"],
  ["a number", "1e999"],
];

test.each(plugins)("%s: what is not a JSON object is refused with code 6", async (type) => {
  await expectNoTrace(node, () =>
    inParallel(
      noJson.flatMap(([what, stdin]) =>
        verbs
          .filter((verb) => !what.startsWith("10 MB") || verb === "ADD" || verb === "DEL")
          .map((verb) => ({ what, stdin, verb })),
      ),
      async ({ what, stdin, verb }) => {
        const outcome = await call(node, type, verb, stdin, { netns: "/no/such" });
        expect(expectError(outcome, `${verb}, ${what}`)).toMatchObject({
          code: 6,
          msg: expect.stringMatching(/^error unmarshall network config: /),
        });
      },
    ),
  );
});

test("what no config comes near is not read to its end", async () => {
  const outcome = await call(node, "loopback", "ADD", new Uint8Array(65 << 20), { netns: "/no/such" });
  expect(expectError(outcome, "65 MB")).toMatchObject({
    code: 5,
    msg: "error reading from stdin: input is longer than 67108864 bytes",
  });
});

test.each(plugins)("%s: every truncation of a config is refused", async (type) => {
  const whole = JSON.stringify(goodConf(type, node));
  await expectNoTrace(node, () =>
    inParallel(
      Array.from({ length: whole.length }, (_, i) => i),
      async (length) => {
        const outcome = await call(node, type, "ADD", whole.slice(0, length), { netns: "/no/such" });
        expect(expectError(outcome, whole.slice(0, length))).toMatchObject({ code: 6 });
      },
    ),
  );
});

test.each(plugins)("%s: 10 MB that nobody reads do no harm", async (type) => {
  const conf = { ...goodConf(type, node), unknown: many("x", 10 << 20), more: JSON.parse(deep(1000)) };
  await expectNoTrace(node, async () => {
    const ns = node.container();
    expect(await call(node, type, "STATUS", conf)).toMatchObject({ status: 0 });
    expectSilence(await call(node, type, "DEL", conf, { netns: ns }), "DEL");
  });
});

test.each(plugins)(
  "%s: values of 10 MB and of a hundred thousand levels are shown in short",
  async (type) => {
    const values = [JSON.stringify(many("x", 10 << 20)), deep(1e5), `{"a":${deep(1e5)}}`];
    const cases = values.flatMap((value) => ["name", "dns", "prevResult"].map((key) => ({ key, value })));
    await inParallel(cases, async ({ key, value }) => {
      const stdin = `{"name":"n","cniVersion":"1.1.0",${JSON.stringify(key)}:${value}}`;
      const { msg } = expectError(await call(node, type, "ADD", stdin, { netns: "/no/such" }), key);
      expect(msg.length).toBeLessThan(300);
    });
  },
);

/** JSON values that lean towards what a config has. */
const json = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom(null, true, 0, -1, 1.5, 1e300, "", "10.1.0.0/16", "::1", "eth0", "../x", "\u0000"),
    fc.string({ unit: "binary" }),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(
      fc.constantFrom("type", "ranges", "subnet", "dns", "ips", "cni", "__proto__"),
      tie("value"),
    ),
  ),
}));
const keys = fc.constantFrom(
  ..."name cniVersion type bridge mtu vlan vlanTrunk ipam dns args runtimeConfig prevResult capabilities".split(
    " ",
  ),
  "cni.dev/valid-attachments",
  "toString",
  "__proto__",
);

test.each(plugins)("%s: random configs and random bytes get one answer and leave nothing", async (type) => {
  const config = fc
    .dictionary(keys, json.value as fc.Arbitrary<unknown>)
    .map((conf) => ({ name: "n", ...conf }));
  const stdin = fc.oneof(config, fc.uint8Array({ maxLength: 200 }), fc.json());
  await expectNoTrace(node, () =>
    fc.assert(
      fc.asyncProperty(fc.constantFrom(...verbs), stdin, async (verb, input) => {
        const outcome = await call(node, type, verb, input as object, { netns: "/no/such" });
        if (outcome.status === 0) expectSilence(outcome, verb);
        else expectError(outcome, verb);
        if (verb === "ADD" || verb === "CHECK") expect(outcome.status).toBe(1);
      }),
      { numRuns: 150 },
    ),
  );
});
