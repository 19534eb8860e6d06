export * from "./masquerade.linux.ts";
export { chainOf, iptablesCommentOf, networkHash, nftCommentOf, ownerHash } from "./names.ts";
export { begun, nothing, type Pending, retrying, together } from "./types.ts";
