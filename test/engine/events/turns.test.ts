import { afterAll, beforeAll, expect, test } from "vitest";
import type { Database } from "../../../src/platform/database/database.ts";
import { createTurns } from "../../../src/engine/events/readers/thread-reader.ts";
import { apiOf } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

let server: TestServer;
const databases: Database[] = [];
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(async () => {
  for (const database of databases) await database.close();
  await server.close();
});

const databaseIn = (timeZone: string): Database => {
  const address = new URL(server.connectionString);
  address.searchParams.set("options", `-c TimeZone=${timeZone}`);
  const database = openTestDatabase(address.href);
  databases.push(database);
  return database;
};

test("a thread has the same identity in every session time zone", async () => {
  const threadId = await apiOf(server).aThread();
  const here = await createTurns(databaseIn("Asia/Tokyo")).head(threadId);
  expect(here).toMatchObject({ over: 0, running: null });
  expect(await createTurns(databaseIn("UTC")).head(threadId)).toEqual(here);
});
