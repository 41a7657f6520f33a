import { mkdir, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { tsconfigFault, tsconfigFilesOf } from "../../../src/cli/dev/tsconfig-files.ts";
import { temporaryFolder } from "../../helpers/temporary-folder.ts";

const PACKAGE = "node_modules/@tsconfig/node20";

test("a tsconfig.json includes everything that it extends: chains, lists, packages, a missing one, a broken one", async () => {
  const { path, remove } = await temporaryFolder();
  onTestFinished(remove);
  const files: Record<string, string> = {
    "app/tsconfig.json": '{ // of the project\n "extends": ["../base", "@tsconfig/node20/tsconfig.json"], }',
    "base.json": '{ "extends": "./deep/missing.json" }',
    [`${PACKAGE}/package.json`]: '{ "name": "@tsconfig/node20" }',
    [`${PACKAGE}/tsconfig.json`]: "{}",
    "broken.json": '{ "extends": "./base.json" ',
  };
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(`${path}/${name}`), { recursive: true });
    await writeFile(`${path}/${name}`, text);
  }
  const found = tsconfigFilesOf(`${path}/app/tsconfig.json`);
  for (const name of ["app/tsconfig.json", "base.json", "deep/missing.json", `${PACKAGE}/tsconfig.json`])
    expect(found).toContain(`${path}/${name}`);
  expect(tsconfigFilesOf(`${path}/broken.json`)).toContain(`${path}/broken.json`);
});

test("an error in a tsconfig.json is one sentence with its file; comments and trailing commas are no errors", async () => {
  const { path, remove } = await temporaryFolder();
  onTestFinished(remove);
  const faultOf = async (name: string, text: string) => {
    await writeFile(`${path}/${name}`, text);
    return await tsconfigFault(`${path}/${name}`);
  };
  expect(await faultOf("base.json", '{ /* none */ "compilerOptions": { "strict": true, }, } // end')).toBe(
    undefined,
  );
  expect(await faultOf("fine.json", '{ "extends": "./base.json" }')).toBe(undefined);
  expect(await faultOf("empty.json", "")).toBe(undefined);
  expect(await faultOf("cut.json", '{ "compilerOptions": {')).toBe(
    `${path}/cut.json:1:23 is not JSON: Expected string in JSON but found end of file.`,
  );
  expect(await faultOf("lost.json", '{ "extends": "./missing.json" }')).toBe(
    `${path}/lost.json can't be used: File './missing.json' not found.`,
  );
  expect(await tsconfigFault(undefined)).toBe(undefined);
});
