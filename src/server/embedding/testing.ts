/** For tests of projects that are served by Threadloom. Described in docs/embedding.md. */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type EmbeddedServer, type ServerOptions } from "./server.ts";

export type TestServerOptions = Omit<
  ServerOptions,
  "databaseUrl" | "dataFolder" | "postgresSettings" | "host" | "port"
>;

export interface TestServer extends EmbeddedServer {
  /** Where it listens: what `new Client({ apiUrl })` of the SDK takes. */
  readonly url: string;
  /** Closes it, and removes its database. */
  close(): Promise<void>;
}

/** A crash may lose what the tests have stored; nothing waits for the disk. */
const WITHOUT_THE_DISK = { fsync: "off", synchronous_commit: "off", full_page_writes: "off" };

/**
 * Starts a server on a PostgreSQL of its own, which nobody else uses and which is empty, on a free port of 127.0.0.1. It
 * takes about a second: one for a file of tests, with a new thread in each test, is faster than one for each test.
 */
export const startTestServer = async (options: TestServerOptions = {}): Promise<TestServer> => {
  const folder = await mkdtemp(join(tmpdir(), "threadloom-test-"));
  const removeFolder = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    // As root the database runs as another user, who has to get in.
    await chmod(folder, 0o755);
    const server = await createServer({
      logLevel: "warn",
      ...options,
      dataFolder: folder,
      postgresSettings: WITHOUT_THE_DISK,
      host: "127.0.0.1",
      port: 0,
    });
    const close = (): Promise<void> => server.close().finally(removeFolder);
    try {
      return { ...server, url: await server.listen(), close };
    } catch (error) {
      await close();
      throw error;
    }
  } catch (error) {
    await removeFolder();
    throw error;
  }
};
