import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { StartError } from "../../domain/errors.ts";
import { isThere } from "../../lib/is-there.ts";

/** How the packages of a project get into its image. */
export interface Installation {
  /** The command of a shell. */
  install: string;
  /** Files of the project that it needs beside package.json. */
  files: readonly string[];
  /** It needs more than files at the root: patches, other packages, its own release. */
  needsProject: boolean;
}

const NPM = "npm ci --omit=dev --no-audit --no-fund";
const WITHOUT_LOCK = "npm install --omit=dev --no-audit --no-fund";
const YARN_1 = "yarn install --production --frozen-lockfile --non-interactive";
/** Yarn before 4 leaves out devDependencies only with a plugin; its lock files have a lower number. */
const FIRST_LOCK_OF_YARN_4 = 8;
const USUAL_PNPM = "10";
const USUAL_YARN = "4";

/** What says how packages are fetched. It may hold tokens, so nothing of it gets into the image. */
export const SETTINGS = [".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn"] as const;

/** The version in `packageManager` of package.json, as `10.4.1` of `pnpm@10.4.1+sha512.…`; undefined if it names another or none. */
const pinnedVersion = (manager: string, packageManager: string | undefined): string | undefined => {
  const [, name, version] = /^(\w+)@(\d+(?:\.\d+){0,2}(?:-[\w.]+)?)(?:\+|$)/.exec(packageManager ?? "") ?? [];
  return name === manager ? version : undefined;
};

/** Yarn from 2 on: another program than Yarn 1, with a lock file that looks otherwise. */
const ofModernYarn = async (
  folder: string,
  lock: string,
  packageManager: string | undefined,
): Promise<string> => {
  const settings = await readFile(join(folder, ".yarnrc.yml"), "utf8").catch(() => "");
  const setting = (name: string): string | undefined =>
    new RegExp(`^${name}:[ \\t]*["']?([^"'\\r\\n#]+?)["']?[ \\t]*$`, "m").exec(settings)?.[1];
  if ((setting("nodeLinker") ?? "pnp") === "pnp")
    throw new StartError(
      `${folder} has its packages by Yarn's Plug'n'Play, without the folder node_modules that a server needs: ` +
        "write 'nodeLinker: node-modules' into .yarnrc.yml, and run 'yarn install'.",
    );
  const version = Number(/^__metadata:\s+version: (\d+)/m.exec(lock)?.[1] ?? 0);
  if (version < FIRST_LOCK_OF_YARN_4)
    throw new StartError(
      `yarn.lock is of Yarn 2 or 3, which can't leave the devDependencies out of an image: ` +
        "run 'yarn set version stable', and 'yarn install'.",
    );
  const release = setting("yarnPath");
  const yarn =
    release === undefined || !/^[\w./-]+$/.test(release)
      ? `npx --yes --package=@yarnpkg/cli-dist@${pinnedVersion("yarn", packageManager) ?? USUAL_YARN} yarn`
      : `node ${release}`;
  return `${yarn} workspaces focus --all --production`;
};

/** Finds out by the lock file what installs the packages. Throws StartError where that can't be done in an image. */
export const installationOf = async (
  folder: string,
  packageManager: string | undefined,
): Promise<Installation> => {
  const settings: string[] = [];
  for (const name of [".npmrc", ".yarnrc"]) if (await isThere(join(folder, name))) settings.push(name);
  const by = (install: string, lockFile: string): Installation => ({
    install,
    files: [lockFile, ...settings],
    needsProject: false,
  });
  if (await isThere(join(folder, "package-lock.json"))) return by(NPM, "package-lock.json");
  if (await isThere(join(folder, "pnpm-lock.yaml"))) {
    const version = pinnedVersion("pnpm", packageManager) ?? USUAL_PNPM;
    return by(
      `npm install --global pnpm@${version} && pnpm install --prod --frozen-lockfile`,
      "pnpm-lock.yaml",
    );
  }
  const lock = await readFile(join(folder, "yarn.lock"), "utf8").catch(() => undefined);
  if (lock === undefined) return { install: WITHOUT_LOCK, files: settings, needsProject: false };
  if (!/^__metadata:/m.test(lock)) return by(YARN_1, "yarn.lock");
  const install = await ofModernYarn(folder, lock, packageManager);
  return { install, files: [], needsProject: true };
};
