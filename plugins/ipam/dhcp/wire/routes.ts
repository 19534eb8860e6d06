import type { Route } from "@tscni/types";
import { type Ipv4, ipv4At, ipv4Text, maskOf } from "./ipv4.ts";
import { addressesOption, Option, type Options } from "./options.ts";

/** rtnetlink's RT_SCOPE_LINK */
const linkScope = 253;

/**
 * The routes of a lease. With classless routes (option 121) nothing else counts, RFC 3442; otherwise the static
 * routes (33) and a default route by the first router (3).
 */
export function routesOf(options: Options): Route[] {
  const classless = classlessRoutes(options.get(Option.ClasslessStaticRoute) ?? new Uint8Array());
  if (classless.length > 0) return classless;
  const [router] = addressesOption(options, Option.Router);
  const byDefault = router === undefined ? [] : [{ dst: "0.0.0.0/0", gw: ipv4Text(router) }];
  return [...staticRoutes(options), ...byDefault];
}

/** RFC 3442: prefix length, the bytes of the destination that it covers, router. None when one makes no sense. */
function classlessRoutes(value: Uint8Array): Route[] {
  const routes: Route[] = [];
  for (let at = 0; at < value.length; ) {
    const prefix = value[at++]!;
    const length = Math.ceil(prefix / 8);
    if (prefix > 32 || at + length + 4 > value.length) return [];
    const padded = new Uint8Array(4);
    padded.set(value.subarray(at, at + length));
    routes.push(routeBy((ipv4At(padded, 0) & maskOf(prefix)) >>> 0, prefix, ipv4At(value, at + length)));
    at += length + 4;
  }
  return routes;
}

/** Without a router the destination is on the link itself. */
function routeBy(destination: Ipv4, prefix: number, router: Ipv4): Route {
  const route = { dst: `${ipv4Text(destination)}/${prefix}`, gw: ipv4Text(router) };
  return router === 0 ? { ...route, scope: linkScope } : route;
}

/** Option 33: pairs of destination and router. The classes are those of RFC 791; the default route is not among them. */
function staticRoutes(options: Options): Route[] {
  const addresses = addressesOption(options, Option.StaticRoute);
  const routes: Route[] = [];
  for (let i = 0; i + 1 < addresses.length; i += 2) {
    const prefix = classPrefix(addresses[i]!);
    if (prefix !== undefined)
      routes.push(routeBy((addresses[i]! & maskOf(prefix)) >>> 0, prefix, addresses[i + 1]!));
  }
  return routes;
}

function classPrefix(ip: Ipv4): number | undefined {
  const first = ip >>> 24;
  if (first === 0 || first >= 224) return undefined;
  return first < 128 ? 8 : first < 192 ? 16 : 24;
}
