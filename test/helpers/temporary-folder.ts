import { chmod, mkdtemp, readdir, rm, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { findPostmaster, type Postmaster } from "../../src/platform/database/embedded/cluster.ts";
import { findPlace } from "../../src/platform/database/embedded/place.ts";

/** Holds the number of the process that made it, so that the next run can tell which were left behind. */
const PREFIX = "threadloom-test-";

export interface TemporaryFolder {
  path: string;
  /** For an embedded PostgreSQL; not made yet. */
  dataFolder: string;
  /** Removes it, and ends the server on `dataFolder` at once if one runs there. */
  remove(): Promise<void>;
}

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
};

/** Ends a server at once, as a power failure would: its data are not needed any more. */
export const endServer = ({ pid }: Postmaster): void => {
  try {
    process.kill(pid, "SIGQUIT");
  } catch {
    // It is gone already.
  }
};

const folderAt = (path: string): TemporaryFolder => {
  const dataFolder = join(path, "data");
  return {
    path,
    dataFolder,
    async remove() {
      const place = await findPlace(dataFolder);
      const postmaster = await findPostmaster(place);
      if (postmaster !== undefined) endServer(postmaster);
      while ((await findPostmaster(place)) !== undefined) await delay(10);
      await rm(dirname(place.folder), { recursive: true, force: true, maxRetries: 5 });
      await rm(path, { recursive: true, force: true, maxRetries: 5 });
    },
  };
};

/** Where Linux keeps files in memory; containers may have next to none of it. */
const IN_MEMORY = "/dev/shm";
const FREE_BYTES_AT_LEAST = 4 * 1024 ** 3;

const hasRoom = async (path: string): Promise<boolean> => {
  const found = await statfs(path).catch(() => undefined);
  return found !== undefined && found.bavail * found.bsize >= FREE_BYTES_AT_LEAST;
};

/** `inMemory`: if there is room, since files on a disk cost the system several times the time. */
export const temporaryFolder = async ({ inMemory = false } = {}): Promise<TemporaryFolder> => {
  const parent = inMemory && (await hasRoom(IN_MEMORY)) ? IN_MEMORY : tmpdir();
  const path = await mkdtemp(join(parent, `${PREFIX}${process.pid}-`));
  await chmod(path, 0o755); // as root the embedded server runs as another user
  return folderAt(path);
};

/** Removes what processes that were killed before they could tidy up have left. */
export const removeLeftovers = async (): Promise<void> => {
  for (const parent of [tmpdir(), IN_MEMORY]) {
    for (const name of await readdir(parent).catch(() => [])) {
      const maker = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1];
      if (maker !== undefined && !isAlive(Number(maker))) await folderAt(join(parent, name)).remove();
    }
  }
};
