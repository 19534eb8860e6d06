import { confSchema, type Infer, integer, v } from "@tscni/conf";

export const defaultSocketPath = "/run/cni/dhcp.sock";

/** The names that the reference has for options; every other is a number. */
export const optionCodes: Readonly<Record<string, number>> = {
  "dhcp-client-identifier": 61,
  "subnet-mask": 1,
  routers: 3,
  "host-name": 12,
  "user-class": 77,
  "vendor-class-identifier": 60,
};

/** The code of an option given by name or number; undefined for what is neither. 0 and 255 are no options. */
export function optionCode(option: string | number): number | undefined {
  const named = Object.hasOwn(optionCodes, option) ? optionCodes[option] : undefined;
  if (named !== undefined) return named;
  const code = option === "" ? Number.NaN : Number(option);
  return Number.isInteger(code) && code > 0 && code < 255 ? code : undefined;
}

const names = Object.keys(optionCodes).join(", ");

/** Options that the protocol itself sets: RFC 2132 section 9. */
const reserved: readonly number[] = [50, 51, 52, 53, 54, 55, 57];

const option = () =>
  v.check(
    v.union([v.string(), v.number()]),
    (value) => optionCode(value) !== undefined,
    `is not a DHCP option: a number from 1 to 254, or one of ${names}`,
  );

const settable = () =>
  v.check(
    option(),
    (value) => !reserved.includes(optionCode(value)!),
    "is an option that the client sets itself",
  );

const optionBytes = 255;
const value = () =>
  v.check(
    v.string(),
    (text) => new TextEncoder().encode(text).length <= optionBytes,
    `is longer than the ${optionBytes} bytes of an option`,
  );

/** Options of dhcp; the README's table says them in words. */
export const DhcpConf = confSchema({
  ipam: v.optional(
    v.object({
      type: v.optional(v.string()),
      /** Where the daemon listens. "" for the default. */
      daemonSocketPath: v.optional(v.string(), ""),
      /** Metric of the routes. */
      priority: v.optional(integer(0), 0),
      /** Options to send, from here or from CNI_ARGS. */
      provide: v.optional(
        v.array(
          v.object({
            option: settable(),
            value: v.optional(value(), ""),
            fromArg: v.optional(v.string(), ""),
          }),
        ),
      ),
      /** Options to ask for, beside those asked for by default unless `skipDefault`. */
      request: v.optional(
        v.array(v.object({ option: v.optional(option()), skipDefault: v.optional(v.boolean(), false) })),
      ),
    }),
  ),
});

export type DhcpConf = Infer<typeof DhcpConf>;
