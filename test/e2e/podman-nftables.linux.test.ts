import { podmanMatrix } from "./matrix.ts";

podmanMatrix("nftables");
