export * from "./masquerade.linux.ts";
export { chainOf, iptablesCommentOf, networkHash, nftCommentOf, ownerHash } from "./names.ts";
export { nothing, type Pending, together } from "./types.ts";
