import { execFile } from "node:child_process";
import { cp, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { copyPackagesOfNpx } from "../../src/cli/new/npx-packages.ts";
import { temporaryFolder, type TemporaryFolder } from "../helpers/temporary-folder.ts";

const goesOn = new AbortController().signal;
let temporary: TemporaryFolder | undefined;
let root: string;
let own: string;

/** What `npx` leaves: a package of ours, one that it needs, one that only `npx` needed, installed by npm itself. */
beforeAll(async () => {
  temporary = await temporaryFolder();
  root = temporary.path;
  const pack = async (name: string): Promise<string> => {
    const place = join(root, name);
    await mkdir(place);
    await writeFile(join(place, "package.json"), JSON.stringify({ name, version: "1.0.0", bin: "bin.js" }));
    await writeFile(join(place, "bin.js"), "#!/usr/bin/env node\n");
    await promisify(execFile)("npm", ["pack", "--pack-destination", root], { cwd: place });
    return `file:${join(root, `${name}-1.0.0.tgz`)}`;
  };
  const packages = { own: await pack("own"), needed: await pack("needed"), unneeded: await pack("unneeded") };
  const cache = join(root, "_npx/0123456789abcdef");
  await mkdir(cache, { recursive: true });
  await writeFile(join(cache, "package.json"), JSON.stringify({ dependencies: packages }));
  await promisify(execFile)("npm", ["install", "--offline"], { cwd: cache });
  own = join(cache, "node_modules/own/");
}, 120_000);
afterAll(() => temporary?.remove());

test("npm finishes what npx began: it keeps what the project needs, removes the rest, and writes the same lock file", async () => {
  const made = async (name: string, isCopied: boolean): Promise<{ lock: string; entries: string[] }> => {
    const folder = join(root, name);
    await mkdir(folder);
    const dependencies = { own: `file:${root}/own-1.0.0.tgz`, needed: `file:${root}/needed-1.0.0.tgz` };
    await writeFile(join(folder, "package.json"), JSON.stringify({ name: "project", dependencies }));
    expect(await copyPackagesOfNpx(folder, goesOn, isCopied ? own : `${root}/own/`)).toBe(isCopied);
    await promisify(execFile)("npm", ["install", "--offline"], { cwd: folder });
    const entries = await readdir(join(folder, "node_modules"), { recursive: true });
    return { lock: await readFile(join(folder, "package-lock.json"), "utf8"), entries: entries.sort() };
  };
  const begun = await made("begun", true);
  expect(begun).toEqual(await made("whole", false));
  expect(begun.entries).toContain(join("own", "bin.js"));
  expect(begun.lock.match(/"integrity"/g)).toHaveLength(2);
}, 120_000);

test("packages are not copied into a folder that has some, nor into one that may be a workspace of a project above", async () => {
  await mkdir(join(root, "with/node_modules"), { recursive: true });
  expect(await copyPackagesOfNpx(join(root, "with"), goesOn, own)).toBe(false);
  await mkdir(join(root, "above/packages/agent"), { recursive: true });
  await writeFile(join(root, "above/package.json"), "{}");
  expect(await copyPackagesOfNpx(join(root, "above/packages/agent"), goesOn, own)).toBe(false);
  expect(await readdir(join(root, "above/packages/agent"))).toEqual([]);
});

test("a copy that is stopped leaves nothing behind, least of all half of it by the name that npm reads", async () => {
  const stopping = new AbortController();
  const folder = join(root, "stopped");
  await mkdir(folder);
  const copying = copyPackagesOfNpx(folder, stopping.signal, own);
  stopping.abort();
  expect(await copying).toBe(false);
  expect(await readdir(folder)).toEqual([]);
});

test("a copy that fails leaves nothing behind, so that npm installs all", async () => {
  // npm's own record is not there: what was copied could not be trusted.
  const cache = join(root, "without-record/_npx/0123456789abcdef");
  await cp(join(own, "../../"), cache, { recursive: true });
  await rm(join(cache, "node_modules/.package-lock.json"));
  await mkdir(join(root, "project"));
  expect(await copyPackagesOfNpx(join(root, "project"), goesOn, join(cache, "node_modules/own/"))).toBe(
    false,
  );
  expect(await readdir(join(root, "project"))).toEqual([]);
});
