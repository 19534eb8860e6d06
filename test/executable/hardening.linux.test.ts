import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { disarmedNames } from "../../pkg/multicall/build/patch.ts";
import { bin, type Outcome, root, run } from "./executable.ts";

/*
 * Neither the working directory nor a variable runs code in the executables or changes what they are: the plugins,
 * whose engine has nothing of the kind, and cnitool, which is compiled by Bun. Each test has its control: a program
 * compiled by the same Bun without our measures, which the same attack does reach.
 */

const loopback = join(bin, "loopback");
const cnitool = join(bin, "cnitool");
const version = { CNI_COMMAND: "VERSION" };

/** What each of the two answers in the given surroundings. */
const answers = async (cwd: string, env: Record<string, string> = {}) => ({
  loopback: await run([loopback], { cwd, env: { ...version, ...env } }),
  cnitool: await run([cnitool, "help"], { cwd, env }),
});

let shared: string;
let control: string;
let undisturbed: Record<"loopback" | "cnitool", Outcome>;
beforeAll(async () => {
  shared = mkdtempSync(join(tmpdir(), "tscni-hardening-"));
  control = join(shared, "control");
  writeFileSync(join(shared, "control.ts"), 'console.log(process.env.CNI_COMMAND ?? "none")');
  const compile = ["build", "--compile", "--bytecode", "--outfile", control, join(shared, "control.ts")];
  const built = await run([join(root, "scripts/bun"), ...compile], { env: { PATH: process.env.PATH ?? "" } });
  expect(built).toMatchObject({ status: 0 });
  undisturbed = await answers("/");
  for (const outcome of Object.values(undisturbed)) expect(outcome).toMatchObject({ status: 0, stderr: "" });
  expect(JSON.parse(undisturbed.loopback.stdout)).toMatchObject({ cniVersion: "1.1.0" });
  expect(undisturbed.cnitool.stdout).toContain("attachments");
});
afterAll(() => rmSync(shared, { recursive: true }));

let cwd: string;
let evil: string;
beforeEach(() => {
  cwd = mkdtempSync(join(shared, "cwd-"));
  evil = join(mkdtempSync(join(shared, "evil-")), "evil.js");
  writeFileSync(evil, `require("node:fs").writeFileSync(${JSON.stringify(`${evil}.ran`)}, "");`);
});
afterEach(() => rmSync(cwd, { recursive: true }));

function put(files: Record<string, string>): void {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(cwd, name)), { recursive: true });
    writeFileSync(join(cwd, name), text);
  }
}

/** Whether the hostile code has run since the last look. */
function evilRan(): boolean {
  const ran = existsSync(`${evil}.ran`);
  rmSync(`${evil}.ran`, { force: true });
  return ran;
}

const dotenvFiles = [".env", ".env.local", ".env.production", ".env.development"];

test("no .env is read", async () => {
  put(Object.fromEntries(dotenvFiles.map((name) => [name, "CNI_COMMAND=VERSION\nNETCONFPATH=/evil\n"])));
  expect((await run([control], { cwd })).stdout).toBe("VERSION\n");

  const outcome = await run([loopback], { cwd });
  expect(outcome).toMatchObject({ status: 0, stdout: "" });
  expect(outcome.stderr).toContain("CNI protocol versions supported");
  expect((await run([cnitool, "status", "none"], { cwd })).stderr).not.toContain("/evil");
  expect((await run([cnitool, "status", "none"], { env: { NETCONFPATH: "/evil" } })).stderr).toContain(
    "/evil",
  );
});

test.each([
  ["the working directory", "bunfig.toml", {}],
  ["the home directory", "home/.bunfig.toml", { HOME: "home" }],
  ["the configuration directory", "config/.bunfig.toml", { XDG_CONFIG_HOME: "config" }],
])("no bunfig.toml of %s preloads code", async (_, name, folders) => {
  put({ [name]: `preload = [${JSON.stringify(evil)}]\n` });
  const env = Object.fromEntries(Object.entries(folders).map(([key, folder]) => [key, join(cwd, folder)]));
  if (name === "bunfig.toml") {
    await run([control], { cwd, env });
    expect(evilRan()).toBe(true);
  }
  expect(await answers(cwd, env)).toEqual(undisturbed);
  expect(evilRan()).toBe(false);
});

test("package.json, tsconfig.json and node_modules have no say", async () => {
  const names = ["@tscni/plugin-loopback", "@tscni/skel", "@tscni/sys", "valibot", "bun", "node:fs", "fs"];
  const source = readFileSync(evil, "utf8");
  put({
    "package.json": JSON.stringify({ main: evil, module: evil, type: "commonjs", imports: { "#a": evil } }),
    "tsconfig.json": JSON.stringify({
      compilerOptions: { baseUrl: ".", paths: Object.fromEntries(["*", ...names].map((n) => [n, [evil]])) },
    }),
    ...Object.fromEntries(names.map((name) => [`node_modules/${name}/index.js`, source])),
    "index.js": source,
    loopback: source,
    "loopback.js": source,
    "cnitool.js": source,
  });
  expect(await answers(cwd)).toEqual(undisturbed);
  expect(evilRan()).toBe(false);
});

test("no library is loaded from the working directory", async () => {
  const libraries = ["libc.so.6", "libc.so", "libpthread.so.0", "libdl.so.2", "libm.so.6", "libgcc_s.so.1"];
  // A file that is no library: whoever tries to load it fails.
  put(Object.fromEntries(libraries.map((name) => [name, "not a library"])));
  const opening = `require("bun:ffi").dlopen(process.argv[1], {})`;
  const loaded = await run([join(root, "scripts/bun"), "-e", opening, "./libc.so.6"], {
    cwd,
    env: { PATH: process.env.PATH ?? "" },
  });
  expect(loaded.status).not.toBe(0);

  expect(await answers(cwd)).toEqual(undisturbed);
});

/** Every name of a variable of Bun's or Node's that is in cnitool, and those that we took out. */
function variables(): string[] {
  const text = readFileSync(cnitool).toString("latin1");
  const found = text.match(/(?:BUN|NODE)_[A-Z0-9_]{2,}/g) ?? [];
  const known = [...disarmedNames, "NODE_OPTIONS", "NODE_PATH", "NODE_ENV", "NODE_DEBUG", "NODE_V8_COVERAGE"];
  // BUN_JSC_* remains: see the next test.
  return [...new Set([...found, ...known])].filter((name) => !name.startsWith("BUN_JSC_")).sort();
}

test.each(["cnitool", "tscni"])("no name that was taken out is left in %s", (name) => {
  const text = readFileSync(join(bin, name)).toString("latin1");
  expect(disarmedNames.filter((variable) => text.includes(variable))).toEqual([]);
});

test("no BUN_ or NODE_ variable runs code, changes an answer or leaves a file", async () => {
  const values = ["1", "0", "3", evil, `--preload ${evil}`, `--require ${evil}`, join(cwd, "out")];
  values.push("127.0.0.1:1/x", `unix://${join(cwd, "socket")}`);
  const names = variables();
  expect(names.length).toBeGreaterThan(150);

  const attempts = names.flatMap((name) => values.map((value) => ({ [name]: value })));
  const influenced: unknown[] = [];
  const worker = async () => {
    for (let env = attempts.pop(); env !== undefined; env = attempts.pop()) {
      const outcomes = await answers(cwd, env);
      const left = [...readdirSync(cwd), ...(evilRan() ? ["evil code has run"] : [])];
      if (JSON.stringify(outcomes) !== JSON.stringify(undisturbed) || left.length > 0) {
        influenced.push({ env, outcomes, left });
      }
    }
  };
  await Promise.all(Array.from({ length: 6 }, worker));
  expect(influenced).toEqual([]);
});

test("without our measures BUN_OPTIONS does run code", async () => {
  await run([control], { cwd, env: { BUN_OPTIONS: `--preload ${evil}` } });
  expect(evilRan()).toBe(true);
});

test("without our measures NODE_CHANNEL_FD is obeyed", async () => {
  expect((await run([control], { env: { NODE_CHANNEL_FD: "x" } })).stderr).toContain("IPC channel");
});

test("without our measures BUN_BE_BUN makes another program, BUN_BYTECODE_ORDER_OUT a file", async () => {
  expect((await run([control, "--revision"], { env: { BUN_BE_BUN: "1" } })).stdout).toMatch(/^\d+\.\d+\.\d+/);
  await run([control], { env: { BUN_BYTECODE_ORDER_OUT: join(cwd, "order") } });
  expect(readdirSync(cwd)).not.toEqual([]);
});

test("BUN_JSC_* remains for cnitool, and can only tune the engine or make it refuse to start", async () => {
  const dumped = await answers("/", { BUN_JSC_dumpOptions: "1" });
  expect(dumped.cnitool.stdout).toBe(undisturbed.cnitool.stdout);
  const refused = await answers("/", { BUN_JSC_noSuchOption: "1" });
  expect(refused.cnitool).toMatchObject({ status: 1, stdout: "" });
  expect([dumped.loopback, refused.loopback]).toEqual([undisturbed.loopback, undisturbed.loopback]);
});
