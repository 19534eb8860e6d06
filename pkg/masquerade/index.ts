export * from "./masquerade.linux.ts";
export { chainOf, iptablesCommentOf, nftCommentOf } from "./names.ts";
