import { type Cidr, type Ip, parseCidr, parseIp } from "@tscni/addr";
import { openNamespace } from "@tscni/ns";
import { makeNamespace, type TestNamespace } from "@tscni/test-support";
import { onTestFinished } from "vitest";
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
