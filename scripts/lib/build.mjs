/** Builds the packages: all of them on Linux, elsewhere those that `linux_only` does not list. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { linuxOnly } from "./linux-only.mjs";

const root = join(import.meta.dirname, "../..");
const skipped = process.platform === "linux" ? [] : linuxOnly(root);
const turbo = [join(root, "node_modules/turbo/bin/turbo"), "run", "build", "--output-logs=new-only"];
const filters = skipped.map((path) => `--filter=!./${path}`);
const { status } = spawnSync(process.execPath, [...turbo, ...filters], { cwd: root, stdio: "inherit" });
process.exitCode = status ?? 1;
