import { defineConfig } from "vitest/config";

// Under Bun, packages resolve to their sources (the "bun" condition); under Node, to what the build left in
// dist, which is what a Node user gets.
const conditions = process.versions.bun ? ["bun"] : [];

// Folders that are not even looked through: tens of thousands of files, each a question to the host in test/vm.
const apart = ["**/node_modules/**", "**/dist/**", "**/.git/**", "**/.cache/**"];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    pool: "threads",
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Templates run as what scripts/new-plugin makes of them.
    exclude: [...apart, "scripts/templates/**"],
    projects: [
      // Runs on Node and on Bun, on every operating system.
      {
        extends: true,
        test: {
          name: "portable",
          include: ["**/*.test.ts"],
          exclude: ["**/*.linux.test.ts", ...apart],
        },
      },
      // Needs Linux, Bun and a network namespace of its own; scripts/test provides them.
      { extends: true, test: { name: "linux", include: ["**/*.linux.test.ts"] } },
    ],
  },
});
