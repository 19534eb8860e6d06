import { podmanMatrix } from "./matrix.ts";

podmanMatrix("iptables");
