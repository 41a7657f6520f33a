import { constants, cp, rename, rm, utimes } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { fileExists } from "../../platform/lib/file-exists.ts";

/** Where this package is installed: three folders above, in `src/` as in `dist/`. */
const OWN_PACKAGE = fileURLToPath(new URL("../../../", import.meta.url));

/** Whether npm may take the folder for a part of another project (a workspace), whose packages are installed elsewhere. */
const isInsideOfProject = async (folder: string): Promise<boolean> => {
  const parent = dirname(folder);
  if (parent === folder) return false;
  return (await fileExists(join(parent, "package.json"))) || isInsideOfProject(parent);
};

/**
 * `npx threadloom new` has just installed this package and all that it needs, for itself (`<cache>/_npx/<hash>/node_modules`), and the
 * new project needs the same: npm would unpack the same 15,000 files a second time. A copy of them is where npm begins instead: what
 * `npm install` finds in place, and of a version that fits, it keeps; it adds what is missing, removes what nothing needs, and writes
 * the same lock file as without (compared). Measured: 2.3 s in place of 13.
 *
 * Not for a folder within another project, nor where packages are already; a copy that fails is taken away, and npm does all of it.
 * It gets its name when it is whole: npm would take half of a package for one that is installed.
 *
 * @param signal aborted: the copy fails
 * @param own the folder of this package, for tests
 * @returns whether packages were copied
 */
export const copyPackagesOfNpx = async (
  folder: string,
  signal: AbortSignal,
  own: string = OWN_PACKAGE,
): Promise<boolean> => {
  const source = dirname(own);
  const isOfNpx = basename(source) === "node_modules" && basename(dirname(dirname(source))) === "_npx";
  const target = join(folder, "node_modules");
  if (!isOfNpx || (await fileExists(target)) || (await isInsideOfProject(folder))) return false;
  const copy = join(folder, ".node_modules-of-npx");
  try {
    // The links of `.bin` stay what they are, relative ones; copies share their blocks where the file system can do that.
    await cp(source, copy, {
      recursive: true,
      filter: () => {
        signal.throwIfAborted();
        return true;
      },
      verbatimSymlinks: true,
      mode: constants.COPYFILE_FICLONE,
    });
    // npm believes its record of what is installed (and has the checksums for the lock file from it) only if no folder is younger.
    const now = new Date();
    await utimes(join(copy, ".package-lock.json"), now, now);
    await rename(copy, target);
    return true;
  } catch {
    // What cannot be taken away is in nobody's way.
    await rm(copy, { recursive: true, force: true, maxRetries: 3 }).catch(() => undefined);
    return false;
  }
};
