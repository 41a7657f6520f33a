import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { reachesTypeScript } from "../../src/graphs/modules.ts";

const folders: string[] = [];

afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true });
});

/** A workspace whose package `@acme/tools` is linked as npm, pnpm and yarn do it. */
const aWorkspace = async (files: Record<string, string>): Promise<(file: string) => string> => {
  const folder = await mkdtemp(join(tmpdir(), "reach-"));
  folders.push(folder);
  for (const [file, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, file)), { recursive: true });
    await writeFile(join(folder, file), text);
  }
  await mkdir(join(folder, "node_modules/@acme"), { recursive: true });
  await symlink("../../packages/tools", join(folder, "node_modules/@acme/tools"));
  return (file) => join(folder, file);
};

const TOOLS = JSON.stringify({ name: "@acme/tools", exports: { ".": { import: "./src/index.ts" } } });
/** Packages published with their source, whose loader is not the project's concern. */
const INSTALLED = {
  "node_modules/installed/package.json": JSON.stringify({ main: "./index.js" }),
  "node_modules/installed/index.js": 'export * from "./source.ts";',
  "node_modules/installed/source.ts": "export const x: number = 1;",
};

test.each([
  ["imports a file", 'import "./other.js";', { "apps/agent/other.js": 'import "./typed.ts";' }, true],
  ["requires a file", 'require("./typed.ts");', {}, true],
  ["imports one later", 'export const later = () => import("./typed.ts");', {}, true],
  ["imports a linked package in TypeScript", 'import "@acme/tools";', {}, true],
  ["imports what can't be followed", 'import "./nowhere.js";', {}, true],
  ["imports a computed name", "export const later = (name) => import(name);", {}, true],
  ["requires a computed name", "const later = (name) => require(name);", {}, true],
  ["imports JavaScript alone", 'import "./other.js";', { "apps/agent/other.js": "export {};" }, false],
  ["imports what is installed", 'import "installed"; import "node:fs"; import "fs";', INSTALLED, false],
] as const)(
  "a graph in JavaScript that %s is recognised as reaching TypeScript, or not",
  async (_, text, more, answer) => {
    const at = await aWorkspace({
      "apps/agent/graph.js": text,
      "apps/agent/typed.ts": "export const x: number = 1;",
      "packages/tools/package.json": TOOLS,
      "packages/tools/src/index.ts": "export const tool: string = 'tool';",
      ...more,
    });
    expect(await reachesTypeScript([at("apps/agent/graph.js")])).toBe(answer);
  },
);
