import { delegate } from "@tscni/ipam";
import { attemptAll, type Call, definePlugin } from "@tscni/skel";
import { readTextFile } from "@tscni/sys";
import { CniError, ErrorCode, emptyResult, messageOf, toCniError } from "@tscni/types";
import { defaultDataDir, defaultSubnetFile, FlannelConf } from "./conf.ts";
import { delegateConfOf, type PluginConf } from "./delegate-conf.ts";
import { findScratch, listScratch, removeScratch, type Scratch, writeScratch } from "./scratch.ts";
import { parseSubnetEnv, type SubnetEnv } from "./subnet-env.ts";

type FlannelCall = Call<FlannelConf>;

/** Hands the work to another plugin, with the node's subnet filled into its config. */
export default definePlugin({
  name: "flannel",
  about: "attaches containers to the subnet that flanneld leased for this node",
  conf: FlannelConf,
  delNeeds: ["dataDir"],

  async add(call, undo) {
    const conf = delegateConfOf(call.conf, loadSubnetEnv(call), call);
    // Before the delegate begins: who is killed in between is found by DEL and GC.
    const path = writeScratch(dataDirOf(call), call.containerId, call.ifName, conf);
    undo.defer(async () => {
      await run("DEL", conf, call);
      removeScratch({ path });
    });
    try {
      return (await run("ADD", conf, call)) ?? emptyResult();
    } catch (error) {
      throw prefixed("failed to delegate add", error);
    }
  },

  /** The file stays until the delegate has done its part, so that DEL can be repeated. */
  async del(call) {
    const scratch = findScratch(dataDirOf(call), call.containerId, call.ifName);
    if (scratch === undefined) return;
    const conf = scratch.conf ?? rebuiltConf(call, scratch);
    if (conf) await run("DEL", conf, call);
    removeScratch(scratch);
  },

  async check(call) {
    const scratch = findScratch(dataDirOf(call), call.containerId, call.ifName);
    if (scratch?.conf === undefined)
      throw new CniError(ErrorCode.Internal, `flannel: no config of a delegate in ${dataDirOf(call)}`, {
        details: `for ${call.containerId} ${call.ifName}`,
      });
    const { prevResult } = JSON.parse(call.stdin);
    await run("CHECK", { ...scratch.conf, cniVersion: call.cniVersion, prevResult }, call);
  },

  async status(call) {
    let env: SubnetEnv;
    try {
      env = loadSubnetEnv(call);
    } catch (error) {
      const { msg, details } = toCniError(error);
      throw new CniError(ErrorCode.PluginNotAvailable, msg, { details, cause: error });
    }
    await run("STATUS", delegateConfOf(call.conf, env, call), call);
  },

  async gc(call) {
    if (call.validAttachments === undefined) return;
    const stale = listScratch(dataDirOf(call)).filter((scratch) => isStale(scratch, call));
    await attemptAll(...stale.map((scratch) => () => collect(scratch, call)), () => gcDelegate(call));
  },
});

/** Files of other networks are theirs; one that can't be read is nobody's to judge. */
function isStale({ conf, containerId, ifName }: Scratch, call: FlannelCall): boolean {
  if (conf?.name !== call.network) return false;
  return !call.validAttachments!.some(
    (valid) => valid.containerID === containerId && (ifName === undefined || valid.ifname === ifName),
  );
}

/** In a file of the reference the interface is not named: what Kubernetes calls it is the best guess. */
async function collect(scratch: Scratch, call: FlannelCall): Promise<void> {
  const { containerId, ifName = "eth0" } = scratch;
  await run("DEL", scratch.conf!, { ...call, containerId, ifName, netns: "" });
  removeScratch(scratch);
}

/** What the delegate has beyond the files: leases and links of attachments that no file tells of. */
async function gcDelegate(call: FlannelCall): Promise<void> {
  let env: SubnetEnv;
  try {
    env = loadSubnetEnv(call);
  } catch (error) {
    call.warn(`the delegate has no GC: ${messageOf(error)}`);
    return;
  }
  const valid = { "cni.dev/valid-attachments": call.validAttachments };
  await run("GC", { ...delegateConfOf(call.conf, env, call), ...valid }, call);
}

/** For a file that is empty, as a crash leaves those of the reference: the config as it would be now. */
function rebuiltConf(call: FlannelCall, { path }: Scratch): PluginConf | undefined {
  try {
    const conf = delegateConfOf(call.conf, loadSubnetEnv(call), call);
    call.warn(`${path} is damaged: using what subnet.env says now`);
    return conf;
  } catch (error) {
    call.warn(`${path} is damaged, nothing is deleted: ${messageOf(error)}`);
    return undefined;
  }
}

const run = (verb: string, conf: PluginConf, call: FlannelCall) =>
  delegate(conf.type, verb, {
    ...call,
    cniVersion: conf.cniVersion || call.cniVersion,
    stdin: JSON.stringify(conf),
  });

/** Throws CniError 11: flanneld writes the file when it has a subnet. */
function loadSubnetEnv(call: FlannelCall): SubnetEnv {
  const file = call.conf.subnetFile || defaultSubnetFile;
  try {
    return parseSubnetEnv(readTextFile(file), file);
  } catch (error) {
    throw new CniError(
      ErrorCode.TryAgainLater,
      `failed to load flannel 'subnet.env' file: ${messageOf(error)}. Check the flannel pod log for this node.`,
      { cause: error },
    );
  }
}

const dataDirOf = ({ conf }: FlannelCall): string => conf.dataDir || defaultDataDir;

function prefixed(what: string, error: unknown): CniError {
  const { code, msg, details } = toCniError(error);
  return new CniError(code, `${what}: ${msg}`, { details, cause: error });
}
