import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname } from "node:path";
import type { Plugin } from "esbuild";

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
export const tailwindOf = (file: string, folder: string): Plugin[] => {
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

export const tailwindAdvice = (styles: string): string | undefined =>
  NEEDS_TAILWIND.test(styles)
    ? `the styles need Tailwind: install tailwindcss and ${PACKAGE} in the project, or make them before`
    : undefined;
