import { chmod, mkdtemp, readdir, rm, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { findPostmaster, type Postmaster } from "../../src/platform/database/embedded/embedded.ts";
import { findPlace } from "../../src/platform/database/embedded/place.ts";

/** The name contains the id of its process, so the next run can recognise folders that were left. */
const PREFIX = "threadloom-test-";

export interface TemporaryFolder {
  path: string;
  /** For an embedded PostgreSQL; not created yet. */
  dataFolder: string;
  /** Removes the folder, and ends a server on `dataFolder` at once. */
  remove(): Promise<void>;
}

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
};

/** Ends a server at once, like a power failure: its data are not needed any more. */
export const endServer = ({ pid }: Postmaster): void => {
  try {
    process.kill(pid, "SIGQUIT");
  } catch {
    // The process is already gone.
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

/** Linux keeps these files in memory; containers may have very little of it. */
const IN_MEMORY = "/dev/shm";
const FREE_BYTES_AT_LEAST = 4 * 1024 ** 3;

const hasRoom = async (path: string): Promise<boolean> => {
  const found = await statfs(path).catch(() => undefined);
  return found !== undefined && found.bavail * found.bsize >= FREE_BYTES_AT_LEAST;
};

/** `inMemory`: if there is room, because files on a disk cost several times the CPU. */
export const temporaryFolder = async ({ inMemory = false } = {}): Promise<TemporaryFolder> => {
  const parent = inMemory && (await hasRoom(IN_MEMORY)) ? IN_MEMORY : tmpdir();
  const path = await mkdtemp(join(parent, `${PREFIX}${process.pid}-`));
  await chmod(path, 0o755); // as root the embedded server runs as another user
  return folderAt(path);
};

/** Removes the folders of processes that were killed before their cleanup. */
export const removeLeftovers = async (): Promise<void> => {
  for (const parent of [tmpdir(), IN_MEMORY]) {
    for (const name of await readdir(parent).catch(() => [])) {
      const maker = new RegExp(`^${PREFIX}(\\d+)-`).exec(name)?.[1];
      if (maker !== undefined && !isAlive(Number(maker))) await folderAt(join(parent, name)).remove();
    }
  }
};
