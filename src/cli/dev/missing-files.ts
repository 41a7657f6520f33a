import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { createPathsMatcher, parseTsconfig } from "get-tsconfig";

const EXTENSIONS = [".ts", ".tsx", ".mts", ".cts", ".js", ".jsx", ".mjs", ".cjs", ".json"];
const FILES_AT_MOST = 500;

const pathsIn = (text: string): string[] =>
  [...text.matchAll(/'((?:\/|[A-Za-z]:\\)[^'\n]+)'/g)].map(([, path = ""]) => path);

/** From the text of Node's error. */
const importersIn = (text: string): string[] =>
  [
    ...text.matchAll(
      /(?:imported from |^\s*- )(?:file:\/\/)?((?:\/|[A-Za-z]:\\).+?)(?:\?edition=-?\d+)?\.?$/gm,
    ),
  ].map(([, path = ""]) => path);

const packagesIn = (text: string): string[] =>
  [...text.matchAll(/Cannot find (?:package|module) '((?:@[\w.-]+\/)?[\w.-]+)/g)].map(
    ([, name = ""]) => name,
  );

const importsOf = async (file: string): Promise<string[]> => {
  const text = await readFile(file, "utf8").catch(() => "");
  return [...text.matchAll(/\b(?:from|import|require)\s*\(?\s*["']([^"'\n]+)["']/g)].map(
    ([, name = ""]) => name,
  );
};

const meantBy = (path: string): string[] => [
  path,
  ...EXTENSIONS.flatMap((extension) => [
    `${path}${extension}`,
    path.replace(/\.[cm]?jsx?$/, extension),
    join(path, `index${extension}`),
  ]),
];

const matcherOf = (tsconfig: string | undefined): ((name: string) => string[]) => {
  try {
    if (tsconfig === undefined) return () => [];
    return createPathsMatcher({ path: tsconfig, config: parseTsconfig(tsconfig) }) ?? (() => []);
  } catch {
    // The broken tsconfig.json is watched itself.
    return () => [];
  }
};

const foldersAbove = (folder: string): string[] =>
  dirname(folder) === folder ? [folder] : [folder, ...foldersAbove(dirname(folder))];

/**
 * Absolute paths of missing files that may cause a "module not found" error.
 * @param tsconfig has the aliases (`paths`)
 */
export const missingFiles = async (message: string, tsconfig: string | undefined): Promise<string[]> => {
  const matched = matcherOf(tsconfig);
  const found = pathsIn(message).flatMap(meantBy);
  for (const importer of importersIn(message)) {
    for (const name of await importsOf(importer)) {
      const files = matched(name).flatMap(meantBy);
      if (!files.slice(1).some((file) => existsSync(file))) found.push(...files);
    }
    for (const folder of foldersAbove(dirname(importer)).filter((one) =>
      existsSync(join(one, "node_modules")),
    ))
      found.push(...packagesIn(message).map((name) => join(folder, "node_modules", name, "package.json")));
  }
  return [...new Set(found)].filter((file) => !existsSync(file)).slice(0, FILES_AT_MOST);
};
