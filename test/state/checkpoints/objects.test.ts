import { Annotation, StateGraph } from "@langchain/langgraph";
import { randomBytes } from "node:crypto";
import { pino } from "pino";
import { createServer } from "node:net";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { openObjectStore, type ObjectStore } from "../../../src/platform/database/object-store.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { isPassing } from "../../../src/platform/database/passing-faults.ts";
import { ObjectStoreError, StateStorageError } from "../../../src/platform/domain/errors.ts";
import { createCheckpointStorage } from "../../../src/state/checkpoints/storage.ts";
import { removeUnusedObjects } from "../../../src/state/checkpoints/object-sweeps.ts";
import { moveLargeContents } from "../../../src/state/checkpoints/objects.ts";
import { LARGE_STRING_CHARACTERS } from "../../../src/state/values/large-strings.ts";
import { walkEncrypted } from "../../../src/server/key-rotation/walk.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";
import { cipherOf, IS_ENCRYPTED, keysOf, TEST_ENCRYPTION } from "../../helpers/encryption.ts";
import { freePort } from "../../helpers/free-port.ts";
import { startObjectServer, type ObjectServer } from "../../helpers/object-store.ts";
import { aRunningRun, openStorage, type OpenStorage } from "./open-storage.ts";

let server: ObjectServer;
let objects: ObjectStore;
let opened: OpenStorage;
beforeAll(async () => {
  server = await startObjectServer();
  objects = await openObjectStore(server.setup);
});
beforeEach(async () => {
  opened = await openStorage(undefined, objects);
});
afterEach(() => opened.close());
afterAll(async () => {
  objects.close();
  await server.close();
});

const logger = pino({ level: "silent" });
const aLargeString = (): string => randomBytes(LARGE_STRING_CHARACTERS).toString("base64");
const at = (threadId: string) => ({ configurable: { thread_id: threadId } });
const State = Annotation.Root({ report: Annotation<string>(), files: Annotation<string[]>() });

/** A thread whose state has two large strings, one of them in a list. */
const aThread = async (): Promise<{ threadId: string; report: string; file: string }> => {
  const [report, file] = [aLargeString(), aLargeString()];
  const run = await aRunningRun(opened.database);
  const saver = opened.storage.saverForAttempt(run);
  const graph = new StateGraph(State)
    .addNode("make", () => ({ report, files: [file, "small"] }))
    .addEdge("__start__", "make");
  await graph.compile({ checkpointer: saver }).invoke({}, at(run.threadId));
  await saver.flush();
  return { threadId: run.threadId, report, file };
};
const stateOf = async (threadId: string, storage = opened.anotherProcess()) => {
  const { values } = (await storage.readHead(threadId)) ?? { values: new Map<string, string>() };
  return Object.fromEntries([...values].map(([name, text]) => [name, JSON.parse(text) as unknown]));
};
const contents = async () =>
  await opened.database.query<{ bytes: number; object: string | null }>(
    `select octet_length(content) as bytes, object_id as object from threadloom.checkpoint_contents where octet_length(content) >= ${LARGE_STRING_CHARACTERS} or object_id is not null order by object_id`,
  );
const noted = async () =>
  await opened.database.query<{ object: string; hash: string | null }>(
    "select object_id as object, hash from threadloom.unused_objects",
  );
/** As if so much time had passed since the objects were noted. */
const age = (interval: string) =>
  opened.database.query(`update threadloom.unused_objects set since = since - interval '${interval}'`);

test("large contents move to the object store, and every reader gets the whole state", async () => {
  const { threadId, report, file } = await aThread();
  const before = new Set(await server.keys());
  expect(await moveLargeContents(opened.database, objects)).toBe(2);
  for (const { bytes, object } of await contents()) {
    expect(bytes).toBeLessThan(20);
    expect(await server.keys()).toContain(object);
    expect(before).not.toContain(object);
  }
  expect(await stateOf(threadId)).toMatchObject({ report, files: [file, "small"] });
  const heads = opened.anotherProcess().readHeads([threadId]);
  for await (const head of heads) expect(head.values.get("report")).toBe(JSON.stringify(report));
  expect((await opened.storage.storage(threadId)).total_bytes).toBeGreaterThan(report.length + file.length);
  expect(await noted()).toEqual([]);
  expect(await moveLargeContents(opened.database, objects)).toBe(0);
});

test("while the object store is away, contents stay in the database and reads fail as in an outage", async () => {
  const moved = await aThread();
  await moveLargeContents(opened.database, objects);
  const kept = await aThread();
  await server.stop();
  try {
    await expect(moveLargeContents(opened.database, objects)).rejects.toSatisfy(isPassing);
    expect(await stateOf(kept.threadId)).toMatchObject({ report: kept.report });
    const failure = await stateOf(moved.threadId).catch((error: unknown) => error);
    expect(isPassing(failure)).toBe(true);
    expect(opened.database.isLoss(failure)).toBe(true);
  } finally {
    await server.start();
  }
  expect(await stateOf(moved.threadId)).toMatchObject({ report: moved.report });
  // Others may take what a failed server has claimed.
  await age("11 minutes");
  expect(await moveLargeContents(opened.database, objects)).toBe(2);
  expect(await stateOf(kept.threadId)).toMatchObject({ report: kept.report });
}, 60_000);

test("the objects of a deleted thread are removed after an hour, but not those that a copy of it needs", async () => {
  const { threadId, report } = await aThread();
  const alone = await aThread();
  await moveLargeContents(opened.database, objects);
  const [ofAlone] = await opened.database.query<{ object: string }>(
    "select object_id as object from threadloom.checkpoint_contents where thread_id = $1 and object_id is not null",
    [alone.threadId],
  );
  const copyId = newId();
  await opened.storage.copyThread(threadId, copyId);
  await opened.storage.deleteThread(threadId);
  await opened.storage.deleteThread(alone.threadId);
  expect(await removeUnusedObjects(opened.database, objects)).toBe(0);
  expect(await server.keys()).toContain(ofAlone?.object);
  await age("61 minutes");
  expect(await removeUnusedObjects(opened.database, objects)).toBe(2);
  expect(await server.keys()).not.toContain(ofAlone?.object);
  expect(await stateOf(copyId)).toMatchObject({ report });
  await opened.storage.deleteThread(copyId);
  await age("61 minutes");
  expect(await removeUnusedObjects(opened.database, objects)).toBe(2);
  expect(await noted()).toEqual([]);
});

test("servers that move contents at the same time store each once", async () => {
  const threads = await Promise.all(Array.from({ length: 6 }, aThread));
  const before = new Set(await server.keys());
  const moved = await Promise.all([1, 2, 3].map(() => moveLargeContents(opened.database, objects)));
  expect(moved.reduce((sum, one) => sum + one, 0)).toBe(12);
  expect((await server.keys()).filter((key) => !before.has(key))).toHaveLength(12);
  expect(await noted()).toEqual([]);
  for (const { threadId, report } of threads) expect(await stateOf(threadId)).toMatchObject({ report });
});

test("what a dead server has uploaded without telling is moved again, and removed", async () => {
  const { threadId, report } = await aThread();
  const dying: ObjectStore = {
    ...objects,
    async write(key, text) {
      await objects.write(key, text);
      throw new Error("killed");
    },
  };
  await expect(moveLargeContents(opened.database, dying)).rejects.toThrow("killed");
  expect(await moveLargeContents(opened.database, objects)).toBe(0);
  await age("11 minutes");
  expect(await moveLargeContents(opened.database, objects)).toBe(2);
  const used = (await contents()).map(({ object }) => object);
  await age("61 minutes");
  expect(await removeUnusedObjects(opened.database, objects)).toBeGreaterThan(0);
  const keys = await server.keys();
  for (const object of used) expect(keys).toContain(object);
  expect(await noted()).toEqual([]);
  expect(await stateOf(threadId)).toMatchObject({ report });
});

test("an object whose content was deleted during its upload, or that a sweep took for unused, is not used", async () => {
  const first = await aThread();
  const interrupted = (work: () => Promise<unknown>): ObjectStore => ({
    ...objects,
    async write(key, text) {
      await objects.write(key, text);
      await work();
    },
  });
  const deleting = interrupted(() => opened.storage.deleteThread(first.threadId));
  expect(await moveLargeContents(opened.database, deleting)).toBe(0);
  const second = await aThread();
  const sweeping = interrupted(async () => {
    await age("61 minutes");
    await removeUnusedObjects(opened.database, objects);
  });
  expect(await moveLargeContents(opened.database, sweeping)).toBe(0);
  expect(await stateOf(second.threadId)).toMatchObject({ report: second.report });
  await age("61 minutes");
  await removeUnusedObjects(opened.database, objects);
  expect(await noted()).toEqual([]);
});

test("a missing object, or a server without the object store, fails the read of this state alone", async () => {
  const { threadId } = await aThread();
  await moveLargeContents(opened.database, objects);
  const database = openTestDatabase(opened.database.connectionString, { encryption: TEST_ENCRYPTION });
  try {
    const elsewhere = createCheckpointStorage({ database, logger });
    await expect(stateOf(threadId, elsewhere)).rejects.toThrow("OBJECT_STORE_URL is not set");
  } finally {
    await database.close();
  }
  for (const { object } of await contents()) await objects.remove(object ?? "");
  await expect(stateOf(threadId)).rejects.toThrow(StateStorageError);
  const { threadId: other, report } = await aThread();
  expect(await stateOf(other)).toMatchObject({ report });
});

test("an object that the store refuses does not keep others in the database", async () => {
  const threads = await Promise.all(Array.from({ length: 5 }, aThread));
  const refused = (await contents()).length - 1;
  let asked = 0;
  const picky: ObjectStore = {
    ...objects,
    async write(key, text) {
      asked += 1;
      if (asked === 3) throw new ObjectStoreError("store an object of this size");
      await objects.write(key, text);
    },
  };
  await expect(moveLargeContents(opened.database, picky)).rejects.toThrow("object of this size");
  expect((await contents()).filter(({ object }) => object !== null)).toHaveLength(refused);
  for (const { threadId, report } of threads) expect(await stateOf(threadId)).toMatchObject({ report });
});

test("a store that accepts requests and never answers fails them in time", async () => {
  const mute = createServer(() => undefined);
  const port = await freePort();
  await new Promise<void>((resolve) => mute.listen(port, "127.0.0.1", resolve));
  const silent = await openObjectStore({ ...server.setup, endpoint: `http://127.0.0.1:${port}` });
  try {
    const stopping = new AbortController();
    const writing = silent.write("key", "text", stopping.signal);
    stopping.abort();
    await expect(writing).rejects.toThrow(ObjectStoreError);
  } finally {
    silent.close();
    mute.close();
  }
});

test("a scan over threads goes on if the object of one is missing", async () => {
  const bad = await aThread();
  await moveLargeContents(opened.database, objects);
  for (const { object } of await contents()) await objects.remove(object ?? "");
  const good = await aThread();
  const found: string[] = [];
  for await (const { threadId } of opened.anotherProcess().readHeads([bad.threadId, good.threadId]))
    found.push(threadId);
  expect(found).toEqual([good.threadId]);
});

// The keys of the test are not those of an encrypted run.
test.skipIf(IS_ENCRYPTED)("a rotation of keys encrypts objects with the newest key", async () => {
  const [old, next] = [randomBytes(16).toString("hex"), randomBytes(16).toString("hex")];
  const { threadId, report, file } = await aThread();
  await moveLargeContents(opened.database, objects);
  const storageWith = (keys: string[]) => {
    const encryption = { keys: keys.flatMap(keysOf), metadataKeys: [] };
    const database = openTestDatabase(opened.database.connectionString, { encryption, objects });
    return { database, storage: createCheckpointStorage({ database, logger }) };
  };
  const rotated = async (...keys: string[]) => {
    const { database } = storageWith(keys);
    const cipher = cipherOf(keys.join(","));
    try {
      const walk = { database, cipher };
      await walkEncrypted({ ...walk, writes: true });
      return { keyId: cipher.keyId, count: await walkEncrypted({ ...walk, writes: false }) };
    } finally {
      await database.close();
    }
  };
  const first = await rotated(old);
  expect([first.count.plain, ...first.count.byKey.keys()]).toEqual([0, first.keyId]);
  const second = await rotated(next, old);
  expect([second.count.plain, ...second.count.byKey.keys()]).toEqual([0, second.keyId]);
  const { database, storage } = storageWith([next]);
  try {
    expect(await stateOf(threadId, storage)).toMatchObject({ report, files: [file, "small"] });
  } finally {
    await database.close();
  }
  for (const { object } of await contents()) expect(await objects.read(object ?? "")).not.toContain(report);
  await age("61 minutes");
  expect(await removeUnusedObjects(opened.database, objects)).toBe(4);
});
