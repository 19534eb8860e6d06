import { needs } from "@tscni/test-support";
import { afterEach, beforeEach, expect, test } from "vitest";
import { backends, type Lab, makeLab, port, traces } from "./testing.ts";

let lab: Lab;
beforeEach((test) => needs(test, "sctp"));
afterEach(() => lab?.close());

test.each(backends)("sctp beside udp and tcp of the same number, with %s", async (backend) => {
  lab = makeLab(backend);
  const ports = ["sctp", "udp", "tcp"].map((protocol, i) => port(8080, 80 + i, { protocol }));
  const c = await lab.publish(ports);
  // SCTP over IPv6 tells the other side of all addresses, link-local ones too, which is not for address translation.
  const kinds = ["sctp4", "udp4", "tcp4", "udp6", "tcp6"];
  for (const kind of kinds) lab.serve(c, kind, 80 + ["sctp", "udp", "tcp"].indexOf(kind.slice(0, -1)));
  // The first packets of all take long in a virtual machine.
  const ask = (kind: string, tries: number): string | undefined => {
    const patience = tries > 1 ? 5 : 1;
    const answer = lab.ask(lab.outside, kind, kind.endsWith("6") ? "fd02::1" : "192.0.2.1", 8080, patience);
    return answer === undefined && tries > 1 ? ask(kind, tries - 1) : answer?.slice(0, 2);
  };
  for (const kind of kinds) expect(ask(kind, 8), kind).toBe("c1");
  await lab.node.ok("CHECK", c.conf, { netns: c.ns });
  await lab.node.ok("DEL", c.conf, { netns: c.ns });
  expect(ask("tcp4", 1)).toBeUndefined();
  expect(traces(lab.node)).toEqual([]);
});
