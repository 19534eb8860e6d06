import { defineConfig } from "vitest/config";

// Under Bun, packages resolve to their sources (the "bun" condition); under Node, to what the build left in
// dist, which is what a Node user gets.
const conditions = process.versions.bun ? ["bun"] : [];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: conditions } },
  test: {
    pool: "threads",
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Templates run as what scripts/new-plugin makes of them.
    exclude: ["**/node_modules/**", "**/dist/**", "scripts/templates/**"],
    projects: [
      // Runs on Node and on Bun, on every operating system.
      {
        extends: true,
        test: {
          name: "portable",
          include: ["**/*.test.ts"],
          exclude: ["**/*.linux.test.ts", "**/node_modules/**", "**/dist/**"],
        },
      },
      // Needs Linux, Bun and a network namespace of its own; scripts/test provides them.
      { extends: true, test: { name: "linux", include: ["**/*.linux.test.ts"] } },
    ],
  },
});
