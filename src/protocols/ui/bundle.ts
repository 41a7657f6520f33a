import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, extname } from "node:path";
import type { Message, OutputFile, Plugin } from "esbuild";
import { createHash } from "node:crypto";
import type { UiConfig, UiEntry } from "../../graphs/project/ui.ts";

/** This package depends on `postcss`. */
const PACKAGE = "@tailwindcss/postcss";

const ADVICE = `the styles need Tailwind: install tailwindcss and ${PACKAGE} in the project, or make them before`;
const NEEDS_TAILWIND = /@(?:tailwind|apply|theme|utility)\b|@import\s+["']tailwindcss/;

type Maker = (options: { base: string }) => unknown;
type Postcss = (plugins: unknown[]) => {
  process(text: string, options: { from: string }): PromiseLike<{ css: string }>;
};

/**
 * Uses the project's package, because Tailwind's native parts are missing on some platforms. Tailwind looks for classes
 * in `folder`, not in the process's working directory.
 */
const tailwindOf = (file: string, folder: string): Plugin => ({
  name: "tailwind",
  setup(build) {
    build.onLoad({ filter: /\.css$/, namespace: "file" }, async ({ path: from }) => {
      const text = await readFile(from, "utf8");
      if (!NEEDS_TAILWIND.test(text)) return undefined;
      let path: string;
      try {
        path = createRequire(file).resolve(PACKAGE);
      } catch {
        return { warnings: [{ text: ADVICE }] };
      }
      const require = createRequire(path);
      const postcss = require("postcss") as Postcss;
      const tailwind = require(path) as Maker;
      const { css } = await postcss([tailwind({ base: folder })]).process(text, { from });
      const loader = from.endsWith(".module.css") ? "local-css" : "css";
      return { contents: css, loader, resolveDir: dirname(from) };
    });
  },
});

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
  warnings: readonly string[];
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

/** The loader's `render` passes the component and an element in its shadow root to its store. */
const entryOf = (file: string): string => `
import components from ${JSON.stringify(`./${basename(file)}`)};
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

/** esbuild runs in its own process. Throws UiBuildError. */
export const bundleUi = async (entry: UiEntry, { shared, folder }: UiSurroundings): Promise<UiBundle> => {
  const { name, file } = entry;
  // Two names may differ only in characters that an identifier can't have.
  const globalName = `__LGUI_${name.replace(/\W/g, "_")}_${digest(name, DIGITS_OF_GLOBAL_NAME)}`;
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
    plugins: [sharing([...OF_THE_PAGE, ...shared]), tailwindOf(file, folder)],
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
    warnings: result.warnings.map(({ text }) => text),
  };
};
