import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { StartError } from "../../platform/domain/errors.ts";
import { fileExists } from "../../platform/lib/file-exists.ts";

export interface Installation {
  /** Without devDependencies. */
  install: string;
  /** With devDependencies, even if NODE_ENV is `production`. */
  installAll: string;
  /** Copied beside package.json. */
  files: readonly string[];
  /** Patches, local packages and a vendored Yarn need the whole project. */
  needsProject: boolean;
}

type Commands = Pick<Installation, "install" | "installAll">;

const NPM: Commands = {
  install: "npm ci --omit=dev --no-audit --no-fund",
  installAll: "npm ci --include=dev --no-audit --no-fund",
};
const WITHOUT_LOCK: Commands = {
  install: "npm install --omit=dev --no-audit --no-fund",
  installAll: "npm install --include=dev --no-audit --no-fund",
};
const YARN_1: Commands = {
  install: "yarn install --production --frozen-lockfile --non-interactive",
  installAll: "yarn install --production=false --frozen-lockfile --non-interactive",
};
/** Yarn before 4 needs a plugin to leave out devDependencies. */
const FIRST_LOCK_OF_YARN_4 = 8;
const USUAL_PNPM = "10";
const USUAL_YARN = "4";

/** May hold tokens, so they must not get into the image. */
export const SETTINGS = [".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn"] as const;

const LOCK_FILES = [
  { lockFile: "package-lock.json", manager: "npm" },
  { lockFile: "pnpm-lock.yaml", manager: "pnpm" },
  { lockFile: "yarn.lock", manager: "yarn" },
] as const;
type KnownLock = (typeof LOCK_FILES)[number];

export const lockFilesOf = async (folder: string): Promise<KnownLock[]> => {
  const found: KnownLock[] = [];
  for (const known of LOCK_FILES) if (await fileExists(join(folder, known.lockFile))) found.push(known);
  return found;
};

/** @throws StartError if it is unclear which of several lock files counts */
const lockFileOf = async (
  folder: string,
  packageManager: string | undefined,
): Promise<KnownLock["lockFile"] | undefined> => {
  const found = await lockFilesOf(folder);
  const named = found.find(({ manager }) => packageManager?.startsWith(`${manager}@`));
  if (named === undefined && found.length > 1)
    throw new StartError(
      `There are ${found.map(({ lockFile }) => lockFile).join(", ")}: remove the lock files that you do not use, or name the ` +
        "package manager in packageManager of package.json.",
    );
  return (named ?? found[0])?.lockFile;
};

/** E.g. `10.4.1` of `pnpm@10.4.1+sha512.…`. */
const pinnedVersion = (manager: string, packageManager: string | undefined): string | undefined => {
  const [, name, version] = /^(\w+)@(\d+(?:\.\d+){0,2}(?:-[\w.]+)?)(?:\+|$)/.exec(packageManager ?? "") ?? [];
  return name === manager ? version : undefined;
};

const ofModernYarn = async (
  folder: string,
  lock: string,
  packageManager: string | undefined,
): Promise<Commands> => {
  const settings = await readFile(join(folder, ".yarnrc.yml"), "utf8").catch(() => "");
  const linker = /^nodeLinker:[ \t]*["']?([\w-]+)/m.exec(settings)?.[1] ?? "pnp";
  if (linker === "pnp")
    throw new StartError(
      `${folder} uses Yarn's Plug'n'Play, but a server needs a folder node_modules: ` +
        "write 'nodeLinker: node-modules' into .yarnrc.yml, and run 'yarn install'.",
    );
  const version = Number(/^__metadata:\s+version: (\d+)/m.exec(lock)?.[1] ?? 0);
  if (version < FIRST_LOCK_OF_YARN_4)
    throw new StartError(
      `yarn.lock is of Yarn 2 or 3, which can't leave devDependencies out of an image: ` +
        "run 'yarn set version stable', and 'yarn install'.",
    );
  // It uses a release that yarnPath names.
  const yarn = `npx --yes --package=@yarnpkg/cli-dist@${pinnedVersion("yarn", packageManager) ?? USUAL_YARN} yarn`;
  return {
    install: `${yarn} workspaces focus --all --production`,
    installAll: `${yarn} install --immutable`,
  };
};

export const installationOf = async (
  folder: string,
  packageManager: string | undefined,
): Promise<Installation> => {
  const settings: string[] = [];
  for (const name of [".npmrc", ".yarnrc"]) if (await fileExists(join(folder, name))) settings.push(name);
  const lockFile = await lockFileOf(folder, packageManager);
  const by = (commands: Commands): Installation => ({
    ...commands,
    files: [...(lockFile === undefined ? [] : [lockFile]), ...settings],
    needsProject: false,
  });
  if (lockFile === undefined) return by(WITHOUT_LOCK);
  if (!(await readFile(join(folder, lockFile), "utf8")).includes("threadloom"))
    throw new StartError(
      `${lockFile} does not name threadloom, so the image would have no server. Install threadloom with the package manager of ` +
        `${lockFile}, or remove ${lockFile} if you use another package manager.`,
    );
  if (lockFile === "package-lock.json") return by(NPM);
  if (lockFile === "pnpm-lock.yaml") {
    const version = pinnedVersion("pnpm", packageManager) ?? USUAL_PNPM;
    const pnpm = `npm install --global pnpm@${version} && pnpm install`;
    return by({
      install: `${pnpm} --prod --frozen-lockfile`,
      installAll: `${pnpm} --prod=false --frozen-lockfile`,
    });
  }
  const lock = await readFile(join(folder, lockFile), "utf8");
  if (!/^__metadata:/m.test(lock)) return by(YARN_1);
  return { ...by(await ofModernYarn(folder, lock, packageManager)), files: [], needsProject: true };
};
