export type { Attachment, CacheProblem, Exec } from "@tscni/libcni";
export type { Dns, Result, Route } from "@tscni/types";
export type { Bandwidth, ContainerOptions, DnsCapability, IpRange, PortMapping } from "./container.ts";
export { crictlConfig, crictlResult } from "./crictl.ts";
export {
  isNetworkingError,
  type NetworkFailure,
  NetworkingError,
  type NetworkingErrorCode,
} from "./errors.ts";
export type { Listener, NetworkingEvent } from "./events.ts";
export type { GarbageReport, Living, LivingContainer } from "./gc.ts";
export { Networking, type NetworkingConfig } from "./networking.ts";
export type { Network, NetworkSource } from "./networks.ts";
export type {
  CheckOptions,
  GcOptions,
  NetworkingOptions,
  OperationOptions,
  RemoveOptions,
  SetupOptions,
} from "./options.ts";
export type { AttachedAddress, AttachedInterface, SetupResult } from "./result.ts";
export type { WatchOptions } from "./watch.ts";
