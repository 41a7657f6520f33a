import { Worker } from "node:worker_threads";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, extname } from "node:path";
import type { Message, OutputFile, Plugin } from "esbuild";
import { createHash } from "node:crypto";
import type { UiConfig, UiEntry } from "../../graphs/project/ui.ts";

const ENTRY = new URL("./component-names-thread.js", import.meta.url);

/** A slower script is no module of components. */
const ANSWER_MS = 5_000;
const MEMORY_MEGABYTES = 128;

/**
 * Undefined if the bundle needs a page (for example `document`) to load. The bundle gets only the language: no files,
 * no network.
 */
const namesOfComponents = async (
  script: string,
  globalName: string,
): Promise<ReadonlySet<string> | undefined> => {
  const thread = new Worker(ENTRY, {
    workerData: { script, globalName },
    env: {},
    execArgv: [],
    resourceLimits: { maxOldGenerationSizeMb: MEMORY_MEGABYTES },
    stdout: true,
    stderr: true,
  });
  // A stopping server does not wait for the thread.
  thread.unref();
  let timer: NodeJS.Timeout | undefined;
  try {
    const names = await new Promise<unknown>((resolve) => {
      thread.once("message", resolve);
      thread.once("error", () => resolve(undefined));
      thread.once("exit", () => resolve(undefined));
      timer = setTimeout(() => resolve(undefined), ANSWER_MS);
      timer.unref();
    });
    return Array.isArray(names) ? new Set(names as string[]) : undefined;
  } finally {
    clearTimeout(timer);
    await thread.terminate();
  }
};

/** This package depends on `postcss`. */
const PACKAGE = "@tailwindcss/postcss";

const NEEDS_TAILWIND = /@(?:tailwind|apply|theme|utility)\b|@import\s+["']tailwindcss/;

type Maker = (options: { base: string }) => unknown;
type Postcss = (plugins: unknown[]) => {
  process(text: string, options: { from: string }): PromiseLike<{ css: string }>;
};

/**
 * Uses the project's package, because Tailwind's native parts are missing on some platforms. Tailwind looks for classes
 * in `folder`, not in the process's working directory.
 */
const tailwindOf = (file: string, folder: string): Plugin[] => {
  let path: string;
  try {
    path = createRequire(file).resolve(PACKAGE);
  } catch {
    return [];
  }
  const require = createRequire(path);
  const postcss = require("postcss") as Postcss;
  const tailwind = require(path) as Maker;
  return [
    {
      name: "tailwind",
      setup(build) {
        build.onLoad({ filter: /\.css$/, namespace: "file" }, async ({ path: from }) => {
          const text = await readFile(from, "utf8");
          if (!NEEDS_TAILWIND.test(text)) return undefined;
          const { css } = await postcss([tailwind({ base: folder })]).process(text, { from });
          const loader = from.endsWith(".module.css") ? "local-css" : "css";
          return { contents: css, loader, resolveDir: dirname(from) };
        });
      },
    },
  ];
};

const tailwindAdvice = (styles: string): string | undefined =>
  NEEDS_TAILWIND.test(styles)
    ? `the styles need Tailwind: install tailwindcss and ${PACKAGE} in the project, or make them before`
    : undefined;

export interface UiFile {
  /** Changes with the contents: pages may cache the file for ever. */
  name: string;
  contents: Buffer;
  contentType: string;
}

export interface UiBundle {
  /** The script's global variable; it has a function `render(name, shadowRootId)`. */
  globalName: string;
  script: UiFile;
  styles: readonly UiFile[];
  /** Undefined if the bundle loads only in a page. */
  componentNames: ReadonlySet<string> | undefined;
  advice: string | undefined;
}

type UiSurroundings = Pick<UiConfig, "shared" | "folder">;

/** The message names files, so it is only for the log. */
export class UiBuildError extends Error {
  override readonly name = "UiBuildError";
}

/**
 * The SDK's loader (`@langchain/langgraph-sdk/react-ui`) provides these in the page. Hooks only work with the page's
 * own React.
 */
const OF_THE_PAGE = ["react", "react-dom", "@langchain/langgraph-sdk"];

const isOf = (name: string, packages: readonly string[]): boolean =>
  packages.some((one) => name === one || name.startsWith(`${one}/`));

/** `LGUI_REQUIRE` is the loader's function for these packages. */
const sharing = (packages: readonly string[]): Plugin => ({
  name: "packages-of-the-page",
  setup(build) {
    build.onResolve({ filter: /^[^./]/ }, ({ path }) =>
      isOf(path, packages) ? { path, namespace: "page" } : undefined,
    );
    build.onLoad({ filter: /.*/, namespace: "page" }, ({ path }) => ({
      contents: `module.exports = globalThis[Symbol.for("LGUI_REQUIRE")](${JSON.stringify(path)});`,
      loader: "js",
    }));
  },
});

/**
 * The loader's `render` passes the component and an element in its shadow root to its store. Only this server reads
 * `names`.
 */
const entryOf = (file: string): string => `
import components from ${JSON.stringify(`./${basename(file)}`)};
export const names = Object.keys(components);
export const render = (name, shadowRootId) => {
  const root = document.getElementById(shadowRootId)?.shadowRoot;
  if (root == null) return;
  const component = Object.hasOwn(components, name) ? components[name] : undefined;
  if (component === undefined) throw new Error("There is no component '" + name + "'.");
  const element = document.createElement("div");
  root.appendChild(element);
  globalThis[Symbol.for("LGUI_EXT_STORE")].respond(shadowRootId, component, element);
};
`;

/** The browsers that the loader supports. */
const TARGET = "es2022";

/** A relative address in a script would refer to the page's server. */
const AS_DATA = Object.fromEntries(
  [".png", ".jpg", ".jpeg", ".gif", ".webp", ".avif", ".svg", ".woff", ".woff2", ".ttf", ".otf"].map(
    (extension) => [extension, "dataurl" as const],
  ),
);

const DIGITS_OF_GLOBAL_NAME = 8;
const DIGITS_OF_FILE_NAME = 16;

const digest = (contents: string | Uint8Array, digits: number): string =>
  createHash("sha256").update(contents).digest("hex").slice(0, digits);

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
};

const toFile = ({ path, contents }: OutputFile): UiFile => {
  const extension = extname(path);
  return {
    name: `ui-${digest(contents, DIGITS_OF_FILE_NAME)}${extension}`,
    contents: Buffer.from(contents),
    contentType: CONTENT_TYPES[extension] ?? "application/octet-stream",
  };
};

const sentenceOf = ({ text, location }: Message): string =>
  location === null ? text : `${location.file}:${location.line}:${location.column + 1}: ${text}`;

const failureOf = ({ name, file }: UiEntry, thrown: unknown): UiBuildError => {
  const errors = (thrown as { errors?: Message[] }).errors ?? [];
  const sentences = errors.length > 0 ? errors.map(sentenceOf) : [String(thrown)];
  return new UiBuildError(
    `The components of '${name}' (${file}) can't be bundled: ${sentences.join("; ")}.`,
    {
      cause: thrown,
    },
  );
};

const pluginsOf = (entry: UiEntry, { shared, folder }: UiSurroundings): Plugin[] => {
  try {
    return [sharing([...OF_THE_PAGE, ...shared]), ...tailwindOf(entry.file, folder)];
  } catch (error) {
    throw failureOf(entry, error);
  }
};

/** esbuild runs in its own process. Throws UiBuildError. */
export const bundleUi = async (entry: UiEntry, surroundings: UiSurroundings): Promise<UiBundle> => {
  const { name, file } = entry;
  // Two names may differ only in characters that an identifier can't have.
  const globalName = `__LGUI_${name.replace(/\W/g, "_")}_${digest(name, DIGITS_OF_GLOBAL_NAME)}`;
  const plugins = pluginsOf(entry, surroundings);
  // Projects without components do not pay for esbuild.
  const { build } = await import("esbuild");
  const result = await build({
    stdin: { contents: entryOf(file), resolveDir: dirname(file), sourcefile: "ui-entry.js" },
    absWorkingDir: dirname(file),
    outdir: dirname(file),
    write: false,
    bundle: true,
    minify: true,
    legalComments: "none",
    format: "iife",
    globalName,
    platform: "browser",
    target: TARGET,
    jsx: "automatic",
    loader: AS_DATA,
    plugins,
    logLevel: "silent",
  }).catch((error: unknown) => {
    throw failureOf(entry, error);
  });
  const script = result.outputFiles.find(({ path }) => path.endsWith(".js"));
  if (script === undefined) throw failureOf(entry, "esbuild made no script of them");
  const styles = result.outputFiles.filter(({ path }) => path.endsWith(".css"));
  return {
    globalName,
    script: toFile(script),
    styles: styles.map(toFile),
    componentNames: await namesOfComponents(script.text, globalName),
    advice: styles.map(({ text }) => tailwindAdvice(text)).find((advice) => advice !== undefined),
  };
};
