import { execFile } from "node:child_process";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, onTestFinished, test } from "vitest";
import { temporaryFolder } from "../helpers/temporary-folder.ts";

const BUILD = fileURLToPath(new URL("../../console/build.js", import.meta.url));

test("with packages that differ from package-lock.json, an impossible build of the console names the cause", async () => {
  const { path, remove } = await temporaryFolder();
  onTestFinished(remove);
  await mkdir(`${path}/console`);
  await cp(BUILD, `${path}/console/build.js`);
  await writeFile(`${path}/package.json`, '{ "type": "module" }');
  const packages = {
    "": { devDependencies: { vite: "^8" } },
    "node_modules/vite": { version: "8.3.8" },
  };
  await writeFile(`${path}/package-lock.json`, JSON.stringify({ packages }));
  const building = promisify(execFile)(process.execPath, [`${path}/console/build.js`]);
  await expect(building).rejects.toMatchObject({
    code: 1,
    stderr:
      "The console can't be built, since node_modules is not what package-lock.json says: vite is missing. Run npm ci.\n",
  });
});
