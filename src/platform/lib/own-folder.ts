import { mkdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";

/** The folder that a project's server keeps its files in, unless it is told another one. */
const NAME = ".threadloom";

/**
 * Makes a folder, and tells git to leave the folder out if it has the name above: no project has to name it. A folder that is
 * there already is left as it is, but for that.
 */
export const ensureOwnFolder = async (folder: string): Promise<void> => {
  await mkdir(folder, { recursive: true });
  if (basename(folder) !== NAME) return;
  // It may be there already, or the folder be read only: nothing depends on it.
  await writeFile(join(folder, ".gitignore"), "*\n", { flag: "wx" }).catch(() => undefined);
};
