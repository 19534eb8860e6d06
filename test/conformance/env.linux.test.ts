import { makeNode, type TestNode } from "@tscni/test-support";
import { specVersions } from "@tscni/types";
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

const hostile = [
  "../../etc/passwd",
  "/",
  ".",
  "..",
  "a\nb",
  "a\r\nCNI_COMMAND=DEL",
  " ",
  "a b",
  "\t",
  "-rf",
  "$(id)",
  "`id`",
  "%s%n",
  "a;b",
  "é",
  "\u202e",
  "😀".repeat(20),
  '"}{"code":0',
  "x".repeat(4096),
  `${"x".repeat(4095)}/`,
];

/** Whether the spec or the kernel forbids the value; the other variables may hold anything. */
function isForbidden(name: string, value: string): boolean {
  if (name === "CNI_CONTAINERID") return !/^[a-zA-Z0-9][a-zA-Z0-9_.-]*$/.test(value);
  return name === "CNI_IFNAME" && (new Blob([value]).size > 15 || /[/:\s]|^\.\.?$/.test(value));
}

const variables = ["CONTAINERID", "IFNAME", "NETNS", "ARGS", "PATH", "NETNS_OVERRIDE"].map(
  (name) => `CNI_${name}`,
);

test.each(plugins)("%s: hostile values of every variable", async (type) => {
  const conf = goodConf(type, node);
  const cases = variables.flatMap((name) => hostile.map((value) => ({ name, value })));
  await expectNoTrace(node, () =>
    inParallel(cases, async ({ name, value }) => {
      const more = { netns: "/no/such", env: { [name]: value } };
      const what = `${name}=${JSON.stringify(value)}`;
      for (const verb of ["ADD", "DEL"]) {
        const outcome = await call(node, type, verb, conf, more);
        if (isForbidden(name, value))
          expect(expectError(outcome, `${verb}, ${what}`)).toMatchObject({ code: 4 });
        else if (outcome.status !== 0) expectError(outcome, `${verb}, ${what}`);
        else if (verb === "DEL") expectSilence(outcome, `${verb}, ${what}`);
        else expect(["host-local", "bandwidth"], what).toContain(type); // which don't look at the namespace here
      }
    }),
  );
});

test.each(plugins)("%s: variables that are missing are named, all of them", async (type) => {
  const none = Object.fromEntries(
    ["CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS", "CNI_PATH"].map((name) => [name, undefined]),
  );
  const missing: Record<string, string> = {
    ADD: "CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH",
    CHECK: "CNI_CONTAINERID,CNI_NETNS,CNI_IFNAME,CNI_PATH",
    DEL: "CNI_CONTAINERID,CNI_IFNAME,CNI_PATH",
    STATUS: "CNI_PATH",
    GC: "CNI_PATH",
  };
  for (const verb of verbs) {
    const outcome = await call(node, type, verb, goodConf(type, node), { env: none });
    const msg = `required env variables [${missing[verb]}] missing`;
    expect(expectError(outcome, verb)).toMatchObject({ code: 4, msg });
  }
});

test.each(plugins)("%s: commands that are none", async (type) => {
  for (const verb of ["add", "ADD ", "ADD\n", "../ADD", "x".repeat(4096), "DEL;ADD", "😀"]) {
    const outcome = await call(node, type, verb, goodConf(type, node));
    expect(expectError(outcome, verb)).toMatchObject({ code: 4, msg: `unknown CNI_COMMAND: ${verb}` });
  }
});

/** As the reference has them: what bandwidth looks for is in no result before 0.3.0. */
const versionsOf = (type: string) => (type === "bandwidth" ? specVersions.slice(2) : specVersions);

test.each(plugins)("%s: no command tells who we are on stderr and succeeds", async (type) => {
  for (const verb of [undefined, ""]) {
    const outcome = await call(node, type, verb, "", { env: { CNI_PATH: undefined } });
    expectSilence(outcome, "no command");
    const [about, versions, ...rest] = outcome.stderr.split("\n");
    expect(about).toContain(type);
    expect(versions).toBe(`CNI protocol versions supported: ${versionsOf(type).join(", ")}`);
    expect(rest).toEqual([""]);
  }
});

test.each(plugins)("%s: VERSION needs nothing else", async (type) => {
  const env = { CNI_PATH: undefined, CNI_CONTAINERID: undefined, CNI_IFNAME: "../x" };
  const outcome = await call(node, type, "VERSION", "{", { env });
  expect(outcome).toMatchObject({ status: 0, stderr: "" });
  const supported = JSON.stringify(versionsOf(type));
  expect(outcome.stdout).toBe(`{"cniVersion":"1.1.0","supportedVersions":${supported}}\n`);
});
