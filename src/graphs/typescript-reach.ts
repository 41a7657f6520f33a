import { lstat, readdir, realpath } from "node:fs/promises";
import { dirname, join, sep } from "node:path";

/** Any of TypeScript, also such as no loader is needed for: what is found is only loaded if it is imported. */
export const TYPESCRIPT = /\.[cm]?tsx?$/;

/** What esbuild calls an import or a `require` that only running the program resolves. */
const NOT_FOLLOWED = ["unsupported-dynamic-import", "unsupported-require-call", "indirect-require"];

const isInPackages = (path: string): boolean => path.split(sep).includes("node_modules");

/** Names of packages in one node_modules, of which a folder of a workspace is none: such a one is a link that leads out of it. */
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

/** Those that files of a folder can import, from its node_modules and from those above it. */
const installedAbove = async (folder: string): Promise<string[]> => {
  const names = await installedIn(join(folder, "node_modules"));
  const parent = dirname(folder);
  return parent === folder ? names : [...names, ...(await installedAbove(parent))];
};

/**
 * Whether JavaScript files import TypeScript, over other files and linked packages of a workspace, too. It has to be known before
 * they are imported: what Node has refused once, it refuses for ever, whatever loader comes later.
 *
 * esbuild follows the imports, once and not as a service that stays; what is installed is not read. What it can't follow, as the import
 * of a name that is computed, is answered with `true`: that costs memory, the other answer could cost the graph.
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
