/** A server of S3 on this machine, with files. */
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import type { Server } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { ObjectStoreSetup } from "../../src/platform/database/object-store.ts";
import { freePort } from "./free-port.ts";
import { temporaryFolder } from "./temporary-folder.ts";

interface S3Options {
  address: string;
  port: number;
  silent: boolean;
  directory: string;
  configureBuckets: { name: string }[];
}
type S3 = new (options: S3Options) => {
  run(): Promise<AddressInfo>;
  close(): Promise<void>;
  httpServer: Server;
};

// The package has no types.
const S3rver = createRequire(import.meta.url)("s3rver") as S3;

/** The only credentials that this server knows. */
export const CREDENTIALS = { AWS_ACCESS_KEY_ID: "S3RVER", AWS_SECRET_ACCESS_KEY: "S3RVER" };
const BUCKET = "large-values";
const PREFIX = "threadloom";

export interface ObjectServer {
  setup: ObjectStoreSetup & { endpoint: string };
  /** The keys of the stored objects. */
  keys(): Promise<string[]>;
  /** Its objects stay. */
  stop(): Promise<void>;
  start(): Promise<void>;
  close(): Promise<void>;
}

export const startObjectServer = async (): Promise<ObjectServer> => {
  Object.assign(process.env, CREDENTIALS);
  const folder = await temporaryFolder();
  const port = await freePort();
  let server: InstanceType<S3> | undefined;
  const start = async (): Promise<void> => {
    if (server !== undefined) return;
    const configureBuckets = [{ name: BUCKET }];
    server = new S3rver({
      address: "127.0.0.1",
      port,
      silent: true,
      directory: folder.path,
      configureBuckets,
    });
    await server.run();
  };
  const stop = async (): Promise<void> => {
    const stopped = server;
    server = undefined;
    stopped?.httpServer.closeAllConnections();
    await stopped?.close();
  };
  await start();
  return {
    setup: { url: `s3://${BUCKET}/${PREFIX}`, endpoint: `http://127.0.0.1:${port}`, region: undefined },
    async keys() {
      const inFolder = join(folder.path, BUCKET, PREFIX);
      if (!existsSync(inFolder)) return [];
      const objects = (await readdir(inFolder)).filter((name) => name.endsWith("._S3rver_object"));
      return objects.map((name) => name.replace("._S3rver_object", ""));
    },
    start,
    stop,
    async close() {
      await stop();
      await folder.remove();
    },
  };
};
