/**
 * `npm run test:oldest`: the tests that depend most on LangGraph, with the oldest release that is supported. They run in
 * a copy of this repository whose packages lead to that release: so Node and Vite, tests and graphs all find one copy.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, readdir, readFile, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { temporaryFolder } from "../helpers/temporary-folder.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
/** A workspace, so `npm ci` installs it. */
const OLDEST = join(ROOT, ".ci/oldest-langgraph");
const LEFT_OUT: ReadonlySet<string> = new Set([".git", "bugs-tmp", "coverage", "dist", "node_modules"]);

const packagesIn = async (folder: string): Promise<string[]> => {
  const names = await readdir(folder);
  const scoped = names.filter((name) => name.startsWith("@"));
  const inScopes = await Promise.all(
    scoped.map(async (scope) => (await readdir(join(folder, scope))).map((name) => `${scope}/${name}`)),
  );
  return [...names.filter((name) => !scoped.includes(name)), ...inScopes.flat()];
};

const folder = await temporaryFolder();
try {
  const copy = join(folder.path, "threadloom");
  for (const name of await readdir(ROOT))
    if (!LEFT_OUT.has(name))
      await cp(join(ROOT, name), join(copy, name), {
        recursive: true,
        filter: (source) => !source.endsWith("/node_modules"),
      });
  await symlink(join(ROOT, "dist"), join(copy, "dist"));

  const { devDependencies: old } = JSON.parse(await readFile(join(OLDEST, "package.json"), "utf8")) as {
    devDependencies: Record<string, string>;
  };
  for (const name of await packagesIn(join(ROOT, "node_modules"))) {
    const link = join(copy, "node_modules", name);
    await mkdir(dirname(link), { recursive: true });
    await symlink(join(name in old ? OLDEST : ROOT, "node_modules", name), link);
  }

  const vitest = join(copy, "node_modules/vitest/vitest.mjs");
  const argv = [vitest, "run", "--config", "vitest.oldest.config.ts", ...process.argv.slice(2)];
  const run = spawn(process.execPath, argv, { cwd: copy, stdio: "inherit" });
  const [code] = (await once(run, "close")) as [number | null];
  process.exitCode = code ?? 1;
} finally {
  await folder.remove();
}
