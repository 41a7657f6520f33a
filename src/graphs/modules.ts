import { access } from "node:fs/promises";
import { editionUrl } from "../platform/lib/module-trace.ts";
import { GraphLoadError, messageOf, type GraphEntry } from "./project/langgraph-json.ts";
import { placeText } from "./error-place.ts";
import { reachesTypeScript, TYPESCRIPT } from "./typescript-reach.ts";

/** An export, and what to call it where it can't be loaded; the graph of its id if left out. */
export interface ModuleEntry extends GraphEntry {
  subject?: string;
}

/** Loads the modules that graphs live in. */
export interface ModuleLoader {
  /**
   * The value of an entry's export, in a box: it may be a promise, and awaiting it is not our business here.
   * @throws GraphLoadError with the graph's id, its file and the cause in one sentence, and the lines where it happened
   */
  load(entry: ModuleEntry): Promise<{ exported: unknown }>;
}

/** What the loader leaves behind in its process. */
const TYPESCRIPT_LOADER = Symbol.for("threadloom.typescript-loader");

/**
 * What a module exports. Where the nearest package.json does not say `"type": "module"`, TypeScript with `import` and `export`
 * becomes CommonJS, of which Node names the exports that it finds in the text of the file: none. All are in its `default`.
 */
const exportsOf = (module: Record<string, unknown>): Record<string, unknown> => {
  const whole = module["default"];
  const isCompiled = typeof whole === "object" && whole !== null && Object.hasOwn(whole, "__esModule");
  return isCompiled ? (whole as Record<string, unknown>) : module;
};

/**
 * TypeScript needs a loader. When we are TypeScript ourselves, one is active (tsx, or the test runner), and
 * a second one would transform everything twice. From the compiled JavaScript tsx is loaded here, if a file needs it, or
 * imports one that does.
 *
 * `edition`: the files are read anew for each, with all that they import of the project, where `traceModules` was called.
 *
 * It is loaded for the whole process, and stays. `tsImport` and a registration with a namespace load a second copy
 * of everything, packages included: measured, 300 to 600 ms and another LangGraph beside ours.
 */
export async function createModuleLoader(
  entries: readonly GraphEntry[],
  edition?: number,
): Promise<ModuleLoader> {
  const loaderIsActive = TYPESCRIPT.test(import.meta.url) || Reflect.has(globalThis, TYPESCRIPT_LOADER);
  const files = entries.map(({ file }) => file);
  if (!loaderIsActive && (files.some((file) => TYPESCRIPT.test(file)) || (await reachesTypeScript(files))))
    await import("../platform/lib/typescript-loader.js");

  return {
    async load({ id, file, exportName, subject = `Graph '${id}'` }) {
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
