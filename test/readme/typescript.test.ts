import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import ts from "typescript";
import { expect, test } from "vitest";
import { aProject } from "../helpers/project.ts";
import { userPages } from "./pages.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const COMPILER = `${ROOT}node_modules/typescript-native/bin/tsc`;

/** The package's exports that pages import, with the source of their types. test/main/package.test.ts tests that it exports them. */
const EXPORTS = {
  threadloom: "server/embedding/server.ts",
  "threadloom/testing": "server/embedding/testing.ts",
};
/** Files with types of those exports. */
const BESIDE = ["server/custom-app/environment.ts"];

const OPTIONS = {
  strict: true,
  noUncheckedIndexedAccess: true,
  noUnusedLocals: true,
  verbatimModuleSyntax: true,
  erasableSyntaxOnly: true,
  module: "nodenext",
  target: "es2023",
  lib: ["ES2023", "ES2024.String", "DOM", "DOM.Iterable"],
  jsx: "react-jsx",
  types: ["node"],
  allowImportingTsExtensions: true,
  skipLibCheck: true,
  noEmit: true,
  paths: Object.fromEntries(Object.entries(EXPORTS).map(([name, file]) => [name, [`./package/${file}`]])),
};

/** Only the package's types: with all of its source the compiler would take twice as long. */
const declarations = async (): Promise<Record<string, string>> => {
  const files = [...Object.values(EXPORTS), ...BESIDE].map(async (file) => {
    const text = await readFile(`${ROOT}src/${file}`, "utf8");
    return [`package/${file}`, ts.transpileDeclaration(text, { fileName: file }).outputText] as const;
  });
  return Object.fromEntries(await Promise.all(files));
};

/** The blocks of all pages, each a file named by its page: `docs/auth.md.0.ts`. */
const blocks = (): Record<string, string> =>
  Object.fromEntries(
    userPages().flatMap(({ path, text }) =>
      [...text.matchAll(/^```(tsx?)\n([^]*?)^```$/gm)].map(([, ending = "", block = ""], index) => [
        `${path}.${index}.${ending}`,
        // A block without an import or an export would share its names with others.
        `${block}export {};\n`,
      ]),
    ),
  );

/** The files that readers copy from the guides, which other blocks import. */
const copied = async (): Promise<Record<string, string>> => {
  const folder = `${ROOT}examples/proxy`;
  const files = (await readdir(folder)).map(
    async (file) => [`docs/guides/${file}`, await readFile(`${folder}/${file}`, "utf8")] as const,
  );
  return Object.fromEntries(await Promise.all(files));
};

test("the TypeScript of every page compiles strictly, and an error is found", async () => {
  const files = blocks();
  const pages = Object.keys(files).map((file) => file.replace(/\.\d+\.tsx?$/, ""));
  expect(pages).toEqual(expect.arrayContaining(["docs/quick-start.md", "docs/embedding.md", "docs/auth.md"]));
  const project = await aProject({
    "package.json": { type: "module" },
    "tsconfig.json": { compilerOptions: OPTIONS, include: ["docs", "styles.d.ts", "wrong.ts"] },
    // As bundlers of pages declare it.
    "styles.d.ts": 'declare module "*.css";\n',
    "wrong.ts":
      'import { createServer } from "threadloom";\nexport const n = createServer({ port: "8123" });\n',
    ...files,
    ...(await copied()),
    ...(await declarations()),
  });
  await project.linkPackages();
  const compiling = promisify(execFile)(process.execPath, [COMPILER], { cwd: project.path(".") });
  const output = await compiling.then(
    () => "",
    (error: { stdout: string }) => error.stdout,
  );
  expect(output.trim().split("\n")).toEqual([expect.stringMatching(/^wrong\.ts\(2,\d+\): error TS2322/)]);
});
