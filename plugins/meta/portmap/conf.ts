import { confSchema, type Infer, ipAddress, oneOf, v } from "@tscni/conf";
import { backendOfConditions, conditionsProblem } from "./conditions.ts";

export type Backend = "iptables" | "nftables";

const port = (which: string) =>
  v.check(
    v.number(),
    (n) => Number.isInteger(n) && n > 0 && n <= 65535,
    (n) => `Invalid ${which} port number: ${n} is not between 1 and 65535`,
    { type: "integer", minimum: 1, maximum: 65535 },
  );

const protocols = ["tcp", "udp", "sctp"];

/** One published port, as runtimes pass it. */
const portMapping = v.object({
  hostPort: port("host"),
  containerPort: port("container"),
  protocol: v.optional(
    v.check(
      v.string(),
      (name) => name === "" || protocols.includes(name.toLowerCase()),
      "is not tcp, udp or sctp",
      { enum: protocols },
    ),
    "tcp",
  ),
  hostIP: v.optional(ipAddress(), ""),
});

export type PortMapping = Infer<typeof portMapping>;

const conditions = () =>
  v.check(
    v.array(v.string()),
    (list) => conditionsProblem(list) === undefined,
    (list) => `${JSON.stringify(list)} ${conditionsProblem(list)}`,
  );

/** A name that iptables takes for a chain (XT_EXTENSION_MAXNAMELEN less the NUL). */
const chainName = v.check(v.string(), isChainName, "is not a name of an iptables chain");

function isChainName(name: string): boolean {
  if (name === "" || name.length > 28 || name[0] === "-" || name[0] === "!") return false;
  for (let i = 0; i < name.length; i++) {
    const c = name[i]!;
    if (c <= " " || c > "~" || c === '"' || c === "'" || c === "\\") return false;
  }
  return true;
}

const keys = confSchema({
  backend: v.optional(oneOf<Backend>(["iptables", "nftables"], "unrecognized backend")),
  snat: v.optional(v.boolean(), true),
  masqAll: v.optional(v.boolean(), false),
  markMasqBit: v.optional(
    v.check(
      v.number(),
      (bit) => Number.isInteger(bit) && bit >= 0 && bit <= 31,
      (bit) => `MasqMarkBit must be between 0 and 31, and is ${bit}`,
      { type: "integer", minimum: 0, maximum: 31 },
    ),
  ),
  externalSetMarkChain: v.optional(chainName),
  conditionsV4: v.optional(conditions(), []),
  conditionsV6: v.optional(conditions(), []),
  runtimeConfig: v.optional(v.looseObject({ portMappings: v.optional(v.array(portMapping), []) })),
});

const oneMark = v.check(
  keys,
  (conf) => conf.markMasqBit === undefined || conf.externalSetMarkChain === undefined,
  "Cannot specify externalSetMarkChain and markMasqBit",
);

/** What the plugin's README lists; unknown keys are ignored. */
export const PortmapConf = v.check(
  oneMark,
  (conf) => wrongBackendOptions(conf).length === 0,
  (conf) => wrongBackendText(conf.backend, wrongBackendOptions(conf)),
);

export type PortmapConf = Infer<typeof keys>;

/** The bit that marks what is to be masqueraded, where the config names none. Kubernetes has 14 and 15. */
export const defaultMarkBit = 13;

/** The options that only the other backend understands; none while the config leaves the choice of it open. */
export function wrongBackendOptions(conf: PortmapConf, backend = conf.backend): string[] {
  const wrong: string[] = [];
  if (backend === "nftables" && conf.externalSetMarkChain !== undefined) wrong.push("externalSetMarkChain");
  for (const key of ["conditionsV4", "conditionsV6"] as const) {
    const language = backendOfConditions(conf[key]);
    if (backend !== undefined && language !== undefined && language !== backend) wrong.push(key);
  }
  return wrong;
}

export const wrongBackendText = (backend: string | undefined, options: readonly string[]): string =>
  `${backend} backend was requested but configuration contains ` +
  `${backend === "iptables" ? "nftables" : "iptables"}-specific options [${options.join(" ")}]`;
