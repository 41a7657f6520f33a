import { execFile } from "node:child_process";
import { cp, mkdir, readdir, symlink } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import type { Plugin } from "vite";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const COMPILER = join(ROOT, "node_modules/typescript-native/bin/tsc");
/** `npm run typecheck` checks the types, and declarations are not needed. */
const CODE_ALONE = ["--noCheck", "--declaration", "false"];
/** Parts that are not copied: the source, from which it would run, and compiled code. */
const LEFT_OUT = ["bin", "dist", "src", "test"];

/** The variable with the package's folder for the processes of a test run. */
const FOLDER = "THREADLOOM_TEST_PACKAGE";

/**
 * Compiles this repository's source once in a test run (1 s of CPU) into `folder` (not created yet) as a package. A server that starts
 * there takes 1.6 s of CPU, and one from source 2.6. The published package is also bundled (build.js); counts by file need the files.
 */
export const compilePackage = async (folder: string): Promise<void> => {
  await mkdir(join(folder, "dist"), { recursive: true });
  const compiler = [
    COMPILER,
    "--project",
    "tsconfig.build.json",
    "--outDir",
    join(folder, "dist"),
    ...CODE_ALONE,
  ];
  await promisify(execFile)(process.execPath, compiler, { cwd: ROOT });
  // Copied, because a link would lead back to the source.
  await cp(join(ROOT, "bin"), join(folder, "bin"), { recursive: true });
  for (const name of await readdir(ROOT))
    if (!LEFT_OUT.includes(name) && !name.startsWith("."))
      await symlink(join(ROOT, name), join(folder, name));
  await symlink(join(ROOT, "dist/page"), join(folder, "dist/page"));
  process.env[FOLDER] = folder;
};

/** The program `threadloom`: of the compiled package in a test run, else from source. */
export const programOf = (): string => join(process.env[FOLDER] ?? ROOT, "bin/threadloom.js");

/**
 * Lets servers inside a test process start their programs (graph processes, for example) from the compiled package: from source each start
 * takes 2.5 s of CPU, compiled 1.2 s.
 */
export const compiledPrograms = (): Plugin => ({
  name: "compiled-programs",
  enforce: "pre",
  transform(code, id) {
    const folder = process.env[FOLDER];
    const file = relative(join(ROOT, "src"), id.split("?")[0] ?? id);
    if (folder === undefined || file.startsWith("..")) return undefined;
    const url = pathToFileURL(join(folder, "dist", file)).href;
    return code.replaceAll(/(new URL\("[^"]+-entry\.js", )import\.meta\.url\)/g, `$1"${url}")`);
  },
});
