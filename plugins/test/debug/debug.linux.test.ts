import { readFileSync } from "node:fs";
import { join } from "node:path";
import { makeNamespace, runInProcess, temporaryFolder } from "@tscni/test-support";
import { expect, test } from "vitest";
import debug from "./debug.ts";

const result = { cniVersion: "1.1.0", ips: [{ address: "10.1.2.3/24" }] };

test("hands the result on, runs hooks in the namespace, and writes all of it down", async () => {
  const folder = temporaryFolder();
  const ns = makeNamespace();
  const cniOutput = join(folder.path, "output");
  const seen = join(folder.path, "links");
  const call = (command: string, more: object = {}) => {
    const conf = {
      cniVersion: "1.1.0",
      name: "n",
      type: "debug",
      cniOutput,
      addHooks: [["sh", "-c", `ip -o link > ${seen}`], ["false"], ["no-such-program"]],
      prevResult: result,
      ...more,
    };
    const env = {
      CNI_COMMAND: command,
      CNI_CONTAINERID: "c1",
      CNI_NETNS: ns.path,
      CNI_IFNAME: "eth0",
      CNI_ARGS: "",
    };
    return runInProcess(debug, { env, stdin: conf });
  };
  ns.run("ip", "link", "add", "marker", "type", "veth", "peer", "name", "other");
  const added = await call("ADD");
  expect(added.json).toMatchObject(result);
  expect(added.stderr).toContain('hook "false": exit 1');
  expect(added.stderr).toContain('hook "no-such-program": there is no such program');
  expect(readFileSync(seen, "utf8")).toContain("marker");
  expect((await call("ADD", { prevResult: undefined })).json).toEqual({ cniVersion: "1.1.0" });
  for (const verb of ["CHECK", "DEL", "STATUS", "GC"])
    expect(await call(verb), verb).toMatchObject({ status: 0 });
  const text = readFileSync(cniOutput, "utf8");
  expect(text.match(/^Cmd\w+$/gm)).toEqual(["CmdAdd", "CmdAdd", "CmdCheck", "CmdDel", "CmdStatus", "CmdGC"]);
  expect(text).toContain(`Netns: ${ns.path}\nIfName: eth0\n`);
  ns.close();
  // Nothing to enter any more.
  expect(await call("DEL", { delHooks: [["true"]] })).toMatchObject({ status: 0 });
  folder.remove();
});
