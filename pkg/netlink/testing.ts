import { type Cidr, type Ip, parseCidr, parseIp } from "@tscni/addr";
import { openNamespace } from "@tscni/ns";
import { ip, makeNamespace, type TestNamespace } from "@tscni/test-support";
import { expect, onTestFinished } from "vitest";
import { createLink, getLink, type NewLink } from "./links.ts";
import { type Netlink, openRoute } from "./netlink.ts";

/** A new namespace with a socket in it and its descriptor, until the test ends. */
export interface Place {
  ns: TestNamespace;
  netlink: Netlink;
  fd: number;
}

export function newPlace(): Place {
  const ns = makeNamespace();
  const open = openNamespace(ns.path);
  const netlink = open.enter(openRoute);
  onTestFinished(() => {
    netlink.close();
    open.close();
    ns.close();
  });
  return { ns, netlink, fd: open.fd };
}

export const ipOf = (text: string): Ip => parseIp(text)!;
export const cidrOf = (text: string): Cidr => parseCidr(text)!;

/** The error that `work` throws. */
export function thrownBy(work: () => unknown): unknown {
  try {
    work();
  } catch (error) {
    return error;
  }
  throw new Error("nothing was thrown");
}

/** Makes a link on top of another and expects that iproute2 and we see what was asked for. */
export function expectMade(link: NewLink, shown: object): void {
  const { netlink, ns } = newPlace();
  const below = createLink(netlink, { name: "below", kind: "veth" });
  const made = createLink(netlink, { ...link, link: below.index } as NewLink);
  const [found] = ip(ns, "link", "show", "dev", link.name);
  expect(found).toMatchObject({ ifindex: made.index, linkinfo: { info_kind: link.kind } });
  expect(found.linkinfo.info_data ?? {}).toMatchObject(shown);
  expect(getLink(netlink, made)).toMatchObject({ ...link });
}
