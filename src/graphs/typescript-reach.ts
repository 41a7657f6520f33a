import { lstat, readdir, realpath } from "node:fs/promises";
import { dirname, join, sep } from "node:path";

export const TYPESCRIPT = /\.[cm]?tsx?$/;

/** esbuild's messages for imports that only execution resolves. */
const NOT_FOLLOWED = ["unsupported-dynamic-import", "unsupported-require-call", "indirect-require"];

const isInPackages = (path: string): boolean => path.split(sep).includes("node_modules");

/** Links out of node_modules are workspace folders, so they do not count. */
const installedIn = async (folder: string, scope = ""): Promise<string[]> => {
  const entries = await readdir(join(folder, scope)).catch(() => []);
  const names = entries.map(async (entry): Promise<string[]> => {
    if (entry.startsWith(".")) return [];
    if (entry.startsWith("@") && scope === "") return await installedIn(folder, entry);
    const path = join(folder, scope, entry);
    const isLink = await lstat(path).then((stats) => stats.isSymbolicLink());
    const isInstalled = !isLink || isInPackages(await realpath(path).catch(() => path));
    return isInstalled ? [scope === "" ? entry : `${scope}/${entry}`] : [];
  });
  return (await Promise.all(names)).flat();
};

const installedAbove = async (folder: string): Promise<string[]> => {
  const names = await installedIn(join(folder, "node_modules"));
  const parent = dirname(folder);
  return parent === folder ? names : [...names, ...(await installedAbove(parent))];
};

/**
 * Whether JavaScript files import TypeScript, also through linked workspace packages. Imports that esbuild can't follow
 * count as `true`, which costs only memory: Node caches a refused import forever.
 */
export const reachesTypeScript = async (files: readonly string[]): Promise<boolean> => {
  if (files.length === 0) return false;
  const { buildSync } = await import("esbuild");
  const folders = [...new Set(files.map((file) => dirname(file)))];
  const installed = new Set((await Promise.all(folders.map(installedAbove))).flat());
  try {
    const { metafile, warnings } = buildSync({
      entryPoints: [...files],
      bundle: true,
      write: false,
      metafile: true,
      outdir: "out",
      platform: "node",
      format: "esm",
      logLevel: "silent",
      logOverride: Object.fromEntries(NOT_FOLLOWED.map((id) => [id, "warning"])),
      external: [...installed],
      loader: { ".node": "empty", ".wasm": "empty" },
    });
    if (warnings.some(({ id }) => NOT_FOLLOWED.includes(id))) return true;
    return Object.keys(metafile.inputs).some((file) => TYPESCRIPT.test(file));
  } catch {
    return true;
  }
};
