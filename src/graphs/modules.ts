import { lstat, readdir, realpath, access } from "node:fs/promises";
import { dirname, join, sep } from "node:path";
import { editionUrl } from "../platform/lib/module-trace.ts";
import { GraphLoadError, messageOf, type GraphEntry } from "./project/langgraph-json.ts";
import { placeText } from "./error-place.ts";

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

/** `subject` names the module in error messages. Default: the graph and its id. */
export interface ModuleEntry extends GraphEntry {
  subject?: string;
}

const TYPESCRIPT_LOADER = Symbol.for("threadloom.typescript-loader");

/**
 * Without `"type": "module"` TypeScript modules become CommonJS, in which Node finds no named exports. `default` has
 * all exports.
 */
const exportsOf = (module: Record<string, unknown>): Record<string, unknown> => {
  const whole = module["default"];
  const isCompiled = typeof whole === "object" && whole !== null && Object.hasOwn(whole, "__esModule");
  return isCompiled ? (whole as Record<string, unknown>) : module;
};

/**
 * Registers tsx for the whole process if a file needs it and no loader is active: `tsImport` and namespaces load second
 * copies of packages (300 to 600 ms). With `traceModules`, each `edition` reloads the project's files.
 */
export async function createModuleLoader(entries: readonly GraphEntry[], edition?: number) {
  const loaderIsActive = TYPESCRIPT.test(import.meta.url) || Reflect.has(globalThis, TYPESCRIPT_LOADER);
  const files = entries.map(({ file }) => file);
  if (!loaderIsActive && (files.some((file) => TYPESCRIPT.test(file)) || (await reachesTypeScript(files))))
    await import("../platform/lib/typescript-loader.js");

  return {
    /**
     * Boxed, because the export may be a promise.
     * @throws GraphLoadError
     */
    async load({
      id,
      file,
      exportName,
      subject = `Graph '${id}'`,
    }: ModuleEntry): Promise<{ exported: unknown }> {
      await access(file).catch((cause: unknown) => {
        throw new GraphLoadError(`${subject}: the file ${file} does not exist.`, { cause });
      });
      const module = await import(editionUrl(file, edition)).catch(async (cause: unknown) => {
        const place = await placeText(cause);
        throw new GraphLoadError(`${subject} (${file}) can't be loaded: ${messageOf(cause)}.${place}`, {
          cause,
        });
      });
      const exports = exportsOf(module as Record<string, unknown>);
      if (exportName in exports) return { exported: exports[exportName] };
      const names = Object.keys(exports).map((name) => `'${name}'`);
      throw new GraphLoadError(
        `${subject} (${file}) has no export '${exportName}': ` +
          (names.length > 0 ? `it exports ${names.join(", ")}.` : "it exports nothing."),
      );
    },
  };
}
