/** Described in docs/embedding.md. */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer, type EmbeddedServer, type ServerOptions } from "./server.ts";

export type TestServerOptions = Omit<
  ServerOptions,
  "databaseUrl" | "dataFolder" | "postgresSettings" | "host" | "port"
>;

export interface TestServer extends EmbeddedServer {
  /** The `apiUrl` of the SDK's `Client`. */
  readonly url: string;
  close(): Promise<void>;
}

/** Faster; a crash may lose the tests' data. */
const WITHOUT_THE_DISK = { fsync: "off", synchronous_commit: "off", full_page_writes: "off" };

/** Takes about a second, so start one per test file. */
export const startTestServer = async (options: TestServerOptions = {}): Promise<TestServer> => {
  const folder = await mkdtemp(join(tmpdir(), "threadloom-test-"));
  const removeFolder = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    // Root starts the database as another user, who needs access.
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
