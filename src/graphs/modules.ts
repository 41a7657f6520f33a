import { existsSync } from "node:fs";
import { access } from "node:fs/promises";
import { dirname, join } from "node:path";
import { editionUrl } from "../platform/lib/module-trace.ts";
import { GraphLoadError, messageOf, type GraphEntry } from "./project/langgraph-json.ts";
import { placeText } from "./error-place.ts";

export const TYPESCRIPT = /\.[cm]?tsx?$/;

/** The nearest tsconfig.json, upward. */
export const tsconfigOf = (folder: string): string | undefined => {
  const file = join(folder, "tsconfig.json");
  if (existsSync(file)) return file;
  return dirname(folder) === folder ? undefined : tsconfigOf(dirname(folder));
};

/** A file in JavaScript may import TypeScript, and Node caches a refused import forever. */
const mayNeedLoader = ({ file }: GraphEntry): boolean =>
  TYPESCRIPT.test(file) || tsconfigOf(dirname(file)) !== undefined;

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
 * Registers tsx for the whole process if a file may need it and no loader is active: `tsImport` and namespaces load second
 * copies of packages (300 to 600 ms). With `traceModules`, each `edition` reloads the project's files.
 */
export async function createModuleLoader(entries: readonly GraphEntry[], edition?: number) {
  const loaderIsActive = TYPESCRIPT.test(import.meta.url) || Reflect.has(globalThis, TYPESCRIPT_LOADER);
  if (!loaderIsActive && entries.some(mayNeedLoader)) await import("../platform/lib/typescript-loader.js");

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
      const module = await import(editionUrl(file, edition)).catch((cause: unknown) => {
        const text = `${subject} (${file}) can't be loaded: ${messageOf(cause)}.${placeText(cause)}`;
        throw new GraphLoadError(text, { cause });
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
