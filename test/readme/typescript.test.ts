import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { aProject } from "../helpers/project.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const COMPILER = `${ROOT}node_modules/typescript-native/bin/tsc`;

const OPTIONS = {
  strict: true,
  noUncheckedIndexedAccess: true,
  module: "nodenext",
  target: "es2023",
  lib: ["ES2023", "ES2024.String"],
  types: ["node"],
  allowImportingTsExtensions: true,
  skipLibCheck: true,
  noEmit: true,
  // What pages take of the package; that it exports them is held by test/main/package.test.ts. All of it would take 20 s.
  paths: { threadloom: [`${ROOT}src/custom-app/environment.ts`] },
};

/** What the compiler says of the blocks of a page, each a file of its own. */
const errorsOf = async (page: string, more: Record<string, string> = {}): Promise<string> => {
  const text = await readFile(`${ROOT}docs/${page}`, "utf8");
  const blocks = [...text.matchAll(/^```ts\n([^]*?)^```$/gm)].map(([, block]) => block ?? "");
  expect(blocks.length).toBeGreaterThan(1);
  const files = Object.fromEntries(blocks.map((block, index) => [`block${index}.ts`, block]));
  const project = await aProject({
    "package.json": { type: "module" },
    "tsconfig.json": { compilerOptions: OPTIONS, include: ["*.ts"] },
    ...files,
    ...more,
  });
  await project.linkPackages();
  const run = promisify(execFile)(process.execPath, [COMPILER], { cwd: project.path(".") });
  return run.then(
    () => "",
    (error: { stdout: string }) => error.stdout,
  );
};

test("the TypeScript of docs/auth.md compiles strictly", async () => {
  expect(await errorsOf("auth.md")).toBe("");
});

test("what does not compile is told", async () => {
  expect(await errorsOf("auth.md", { "wrong.ts": 'export const n: number = "";' })).toContain("wrong.ts");
});
