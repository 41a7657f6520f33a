import { mkdir, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";

const NAME = ".threadloom";

/** Makes Git ignore a folder named `.threadloom`, so that no project has to list it. */
export const ensureOwnFolder = async (folder: string): Promise<void> => {
  await mkdir(folder, { recursive: true });
  if (basename(folder) !== NAME) return;
  // The file may exist already, or the folder may be read-only.
  await writeFile(join(folder, ".gitignore"), "*\n", { flag: "wx" }).catch(() => undefined);
};
