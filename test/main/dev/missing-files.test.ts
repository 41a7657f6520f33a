import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { missingFiles } from "../../../src/cli/dev/missing-files.ts";
import { temporaryFolder } from "../../helpers/temporary-folder.ts";

test("the missing file of a message is found by path, by alias and by package, and no existing one is", async () => {
  const { path, remove } = await temporaryFolder();
  onTestFinished(remove);
  const files: Record<string, string> = {
    "app/tsconfig.json": '{ "extends": "./base.json" }',
    "app/base.json": '{ "compilerOptions": { "baseUrl": ".", "paths": { "~/*": ["./lib/*"] } } }',
    "app/a b.ts": 'import { x } from "~/deep/x.js";\nimport { y } from "~/y";\nimport z from "zod";',
    "app/lib/y.ts": "",
    "node_modules/other/package.json": "{}",
  };
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(`${path}/${name}`), { recursive: true });
    await writeFile(`${path}/${name}`, text);
  }
  const found = async (message: string) => await missingFiles(message, `${path}/app/tsconfig.json`);
  const byAlias = await found(
    `Graph 'a' can't be loaded: Cannot find package '~' imported from ${path}/app/a b.ts.`,
  );
  expect(byAlias).toContain(`${path}/app/lib/deep/x.ts`);
  expect(byAlias.filter((file) => file.includes("/lib/y"))).toEqual([]);
  const byPackage = await found(`Cannot find package 'zod' imported from ${path}/app/a b.ts?edition=2`);
  expect(byPackage).toContain(`${path}/node_modules/zod/package.json`);
  const byPath = await found(`Cannot find module '${path}/app/c' imported from ${path}/app/a.ts`);
  expect(byPath).toContain(`${path}/app/c.ts`);
  const required = await found(
    `Cannot find module '~/deep/x'\nRequire stack:\n- ${path}/app/a b.ts\n- ${path}/b.ts`,
  );
  expect(required).toContain(`${path}/app/lib/deep/x.tsx`);
});
