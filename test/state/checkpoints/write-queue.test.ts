import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { ContentCache } from "../../../src/state/checkpoints/content-reader.ts";
import { KnownNames } from "../../../src/state/checkpoints/names.ts";
import { WriteQueue } from "../../../src/state/checkpoints/queue.ts";
import { Encryption } from "../../../src/platform/encryption/encryption.ts";
import type { Database } from "../../../src/platform/database/database.ts";

test("a write that the database refuses is not retried, and nothing is stored after it", async () => {
  const refused = Object.assign(new Error("refused"), { code: "23502" });
  let tries = 0;
  const database = {
    encryption: new Encryption(undefined),
    query() {
      tries += 1;
      return Promise.reject(refused);
    },
  } as Partial<Database> as Database;
  const queue = new WriteQueue({
    database,
    threadId: randomUUID(),
    fence: undefined,
    asynchronous: false,
    cache: new ContentCache(1_000_000),
    names: new KnownNames(),
  });
  await expect(queue.add({ contents: [] })).rejects.toBe(refused);
  expect(() => queue.add({ contents: [] })).toThrow(refused);
  expect(tries).toBe(1);
});
