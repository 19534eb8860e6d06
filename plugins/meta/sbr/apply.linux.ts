import { addRoute, addRule, deleteRoute, type Netlink, openRoute, type Route } from "@tscni/netlink";
import { openNamespaceIfPresent } from "@tscni/ns";
import { attemptAll } from "@tscni/skel";
import { directFirst, type Plan } from "./plan.ts";
import { deleteRouteIfPresent, deleteRuleIfPresent } from "./rules.linux.ts";

export const nothingDone = (): Plan => ({ rules: [], added: [], removed: [], changed: [] });

/** Carries a plan out and notes in `done` what it has done, so that it can be taken back. Throws NetlinkError. */
export function apply(container: Netlink, { rules, added, removed, changed }: Plan, done: Plan): void {
  for (const rule of rules) {
    addRule(container, rule);
    done.rules.push(rule);
  }
  for (const route of added) {
    // A default route may be there twice: among those of the interface, and as the gateway that was asked for.
    addRoute(container, route, "replace");
    done.added.push(route);
  }
  for (const route of removed) {
    deleteRoute(container, route);
    done.removed.push(route);
  }
  for (const change of changed) {
    addRoute(container, change.to, "replace");
    done.changed.push(change);
  }
}

/** Undoes what was done, as far as the namespace is still there. Throws CniError with all that can't be undone. */
export async function takeBack(netns: string, { rules, added, removed, changed }: Plan): Promise<void> {
  using sandbox = openNamespaceIfPresent(netns);
  if (sandbox === undefined) return;
  using container = sandbox.enter(openRoute);
  const restore = (route: Route) => () => addRoute(container, route, "replace");
  await attemptAll(
    ...changed.map(({ from }) => restore(from)),
    ...directFirst(removed).map(restore),
    ...rules.map((rule) => () => deleteRuleIfPresent(container, rule)),
    ...added.map((route) => () => deleteRouteIfPresent(container, route)),
  );
}
