import { confSchema, type Infer, v } from "@tscni/conf";

export const defaultSubnetFile = "/run/flannel/subnet.env";
export const defaultDataDir = "/var/lib/cni/flannel";

/** The delegate's config, but for what this plugin fills in. */
const delegateConf = () => {
  const object = v.looseObject({ type: v.optional(v.string()) });
  const named = v.check(
    object,
    (delegate) => !("name" in delegate),
    "'delegate' dictionary must not have 'name' field, it'll be set by flannel",
  );
  return v.check(
    named,
    (delegate) => !("ipam" in delegate),
    "'delegate' dictionary must not have 'ipam' field, it'll be set by flannel",
  );
};

/** Options of flannel; the README's table says them in words. */
export const FlannelConf = confSchema({
  /** Where flanneld writes the node's subnet. "" for the default. */
  subnetFile: v.optional(v.string(), ""),
  /** Folder of the delegates' configs, one a container. "" for the default. */
  dataDir: v.optional(v.string(), ""),
  delegate: v.optional(delegateConf()),
  /** Further keys for the IPAM plugin. */
  ipam: v.optional(v.looseObject({ type: v.optional(v.string()), routes: v.optional(v.array(v.unknown())) })),
});

export type FlannelConf = Infer<typeof FlannelConf>;
