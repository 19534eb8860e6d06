import { mkdirSync, readlinkSync, writeFileSync } from "node:fs";
import { makeNamespace, temporaryFolder } from "@tscni/test-support";
import { expect, test } from "vitest";
import { openNamespace, openNamespaceIfPresent, sameNamespace } from "./index.ts";

const own = () => readlinkSync("/proc/thread-self/ns/net");

test("work runs inside, and the thread comes back, also when the work throws", () => {
  const made = makeNamespace();
  using namespace = openNamespace(made.path);
  const before = own();
  const inside = namespace.enter(own);
  expect(inside).not.toBe(before);
  expect(own()).toBe(before);
  expect(() =>
    namespace.enter(() => {
      throw new Error(own());
    }),
  ).toThrow(inside);
  expect(own()).toBe(before);
  made.close();
});

test("tells namespaces apart", () => {
  const made = makeNamespace();
  expect(sameNamespace("/proc/thread-self/ns/net")).toBe(true);
  expect(sameNamespace(made.path)).toBe(false);
  expect(sameNamespace(made.path, made.path)).toBe(true);
  expect(sameNamespace("/nowhere")).toBe(false);
  using namespace = openNamespace(made.path);
  expect(`net:[${namespace.inode}]`).toBe(namespace.enter(own));
  made.close();
});

test("what is no network namespace is none", () => {
  const { path: folder, remove } = temporaryFolder();
  writeFileSync(`${folder}/file`, "");
  mkdirSync(`${folder}/folder`);
  const others = [
    "",
    "/nowhere",
    `${folder}/file`,
    `${folder}/file/below`,
    `${folder}/folder`,
    "/proc/self/ns/mnt",
  ];
  for (const path of others) {
    expect(openNamespaceIfPresent(path), path).toBeUndefined();
    expect(() => openNamespace(path), path).toThrow(expect.objectContaining({ code: 8 }));
  }
  remove();
});
