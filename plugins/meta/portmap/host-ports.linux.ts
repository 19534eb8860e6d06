import { onBackend, readTable } from "@tscni/iptables";
import { listNft, nft } from "@tscni/nftables";
import { readRecord, removeRecord, staleRecords, writeRecord } from "@tscni/record";
import type { Call, ValidAttachment } from "@tscni/skel";
import { CniError, ErrorCode, messageOf, type Result } from "@tscni/types";
import {
  type Backend,
  defaultMarkBit,
  type PortmapConf,
  wrongBackendOptions,
  wrongBackendText,
} from "./conf.ts";
import { forgetOwnConnections } from "./connections.linux.ts";
import {
  checkIptables,
  gcIptables,
  publishIptables,
  removePublished,
  unpublishIptables,
} from "./iptables.linux.ts";
import { mayBeThere } from "./iptables-chains.linux.ts";
import { entriesOf, hostportChain } from "./iptables-layout.ts";
import type { Target } from "./mapping.ts";
import { hasGoRules } from "./nft-go.linux.ts";
import { type Conditions, tableOf, tablePrefix } from "./nft-layout.ts";
import { checkNftables, publishNftables } from "./nftables.linux.ts";
import { gcNftables, removeAllPublished, unpublishNftables } from "./nftables-removal.linux.ts";
import { type Published, presentInterfaces } from "./owners.linux.ts";
import { kind, type Publication } from "./publication.ts";
import { settle } from "./settle.ts";

type PortmapCall = Call<PortmapConf>;

/** Publishes on the backend of the config. The record is written before the act. */
export function publish(call: PortmapCall, targets: readonly Target[], result: Result): void {
  const on = (backend: Backend) => () => {
    const publication = publicationOf(backend, call, targets, result);
    publishOn(call, publication, undefined);
  };
  onBackend(call.conf.backend, { iptables: on("iptables"), nftables: on("nftables") });
}

/** Puts back what is missing of what an attachment has published. */
export function repair(call: PortmapCall, targets: readonly Target[], result: Result): void {
  const before = readRecord<Publication>(kind, call, call.warn);
  const on = (backend: Backend) => () => {
    const publication = publicationOf(backend, call, targets, result);
    if (before?.heir) publication.heir = true;
    if (before?.waits) publication.waits = true;
    publishOn(call, publication, before ?? publication);
  };
  onBackend(before?.backend ?? call.conf.backend, { iptables: on("iptables"), nftables: on("nftables") });
}

/** `before` is what the attachment has had until now. */
function publishOn(call: PortmapCall, publication: Publication, before: Publication | undefined): void {
  const { backend } = publication;
  const wrong = wrongBackendOptions(call.conf, backend);
  if (wrong.length > 0) throw new CniError(ErrorCode.InvalidNetworkConfig, wrongBackendText(backend, wrong));
  writeRecord(kind, call, publication);
  if (backend === "iptables") publishIptables(call, call.conf, publication, before);
  else publishNftables(call, publication, conditionsOf(call.conf), before);
}

function publicationOf(
  backend: Backend,
  call: PortmapCall,
  targets: readonly Target[],
  result: Result,
): Publication {
  const { conf, netns } = call;
  const conditions = conditionsOf(conf);
  const ports = conf.runtimeConfig?.portMappings ?? [];
  const hostInterfaces = presentInterfaces(result);
  if (backend === "nftables")
    return {
      backend,
      table: tableOf(conditions),
      masquerading: conf.snat ? (conf.masqAll ? "all" : "subnet") : "none",
      hostInterfaces,
      netns,
      targets: [...targets],
    };
  return {
    backend,
    hostInterfaces,
    netns,
    targets: targets.map((target) => ({
      ...target,
      entries: entriesOf(call, ports, target, target.family === 4 ? conditions.v4 : conditions.v6),
    })),
  };
}

const conditionsOf = ({ conditionsV4, conditionsV6, markMasqBit }: PortmapConf): Conditions => ({
  v4: conditionsV4.filter((text) => text !== ""),
  v6: conditionsV6.filter((text) => text !== ""),
  bit: markMasqBit ?? defaultMarkBit,
});

/** The tables that a network's config may have filled. */
export const tablesOf = (conf: PortmapConf): Set<string> =>
  new Set([tablePrefix, tableOf(conditionsOf(conf))]);

/** Takes back what an attachment has published, by its record, and then the record. */
export function withdraw(call: PortmapCall, published = readRecord<Publication>(kind, call)): void {
  if (published?.backend === "iptables") unpublishIptables(call, published);
  else if (published !== undefined) unpublishNftables(call, published);
  removeRecord(kind, call);
}

/** Throws unless everything is there. What has no record was made by the Go plugin. */
export function check(call: PortmapCall, targets: readonly Target[], result: Result): void {
  const published = readRecord<Publication>(kind, call, call.warn);
  const on = (backend: Backend) => () => {
    const publication = publicationOf(backend, call, targets, result);
    if (backend === "iptables") return checkIptables(call, call.conf, publication, published === undefined);
    if (published === undefined && hasGoRules(call.containerId, targets, call.conf.snat)) return;
    checkNftables(call, publication);
  };
  onBackend(published?.backend ?? call.conf.backend, { iptables: on("iptables"), nftables: on("nftables") });
}

/** Throws code 50 when the backend of the config can't be used on this machine; without one, when neither can. */
export function verifyUsable({ backend }: PortmapConf): void {
  try {
    onBackend(backend, {
      iptables: () => void readTable(4, "nat"),
      nftables: () => void listNft(nft`tables`),
    });
  } catch (error) {
    throw new CniError(ErrorCode.PluginNotAvailable, messageOf(error), { cause: error });
  }
}

/** GC: removes what is not in the list, in a transaction for each family and backend. */
export function collect(call: PortmapCall, valid: readonly ValidAttachment[]): void {
  const { network } = call;
  const records = staleRecords<Publication>(kind, network, valid, call.warn);
  const stale = records.filter((record): record is Published => record.data !== undefined);
  const containers = new Set(valid.map(({ containerID }) => containerID));
  const fromIptables = (family: 4 | 6) => () => {
    if (!mayBeThere(family, hostportChain)) return;
    for (const chain of gcIptables(family, network, containers, stale))
      call.warn(`gc: removed host ports: ${chain} of ${family === 4 ? "iptables" : "ip6tables"}`);
  };
  const owners = valid.map(({ containerID, ifname }) => ({
    network,
    containerId: containerID,
    ifName: ifname,
  }));
  const tables = tablesOf(call.conf);
  for (const { data } of stale) if (data.table !== undefined) tables.add(data.table);
  settle([fromIptables(4), fromIptables(6), () => gcNftables(network, tables, owners, call.warn)]);
  for (const record of records) removeRecord(kind, record);
}

/** Removes what several attachments of the network have published, in one transaction for each family. */
export function withdrawAll(call: PortmapCall, attachments: readonly ValidAttachment[]): void {
  const published: Published[] = [];
  for (const { containerID: containerId, ifname: ifName } of attachments) {
    const owner = { network: call.network, containerId, ifName };
    const data = readRecord<Publication>(kind, owner, call.warn);
    if (data !== undefined && !data.heir) published.push({ ...owner, data, path: "" });
  }
  removePublished(published.filter(({ data }) => data.backend === "iptables"));
  removeAllPublished(published.filter(({ data }) => data.backend === "nftables"));
  for (const record of published) {
    removeRecord(kind, record);
    forgetOwnConnections(record.data.targets, call.warn);
  }
}
