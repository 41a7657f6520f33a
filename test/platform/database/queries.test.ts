import { afterAll, beforeAll, expect, test } from "vitest";
import { queriesOver } from "../../../src/platform/database/queries.ts";
import type { Database } from "../../../src/platform/database/database.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

const ID = "00000000-0000-7000-8000-000000000001";

let fresh: FreshDatabase;
let database: Database;
beforeAll(async () => {
  fresh = await freshDatabase();
  database = openTestDatabase(fresh.connectionString, { poolSize: 3 });
});
afterAll(async () => {
  await database.close();
  await fresh.drop();
});

const found = async (): Promise<number> => (await database.query("select from threadloom.threads")).length;

test("a query of Kysely runs in its transaction, beside raw statements", async () => {
  const undone = database.transaction(async (transaction) => {
    await transaction.query("insert into threadloom.threads (thread_id) values ($1)", [ID]);
    const rows = await queriesOver(transaction).selectFrom("threads").select("thread_id").execute();
    expect(rows).toEqual([{ thread_id: ID }]);
    const { numUpdatedRows } = await queriesOver(transaction)
      .updateTable("threads")
      .set({ status: "error" })
      .where("thread_id", "=", ID)
      .executeTakeFirstOrThrow();
    expect(numUpdatedRows).toBe(1n);
    throw new Error("undo it");
  });
  await expect(undone).rejects.toThrow("undo it");
  expect(await found()).toBe(0);
});

test("Kysely opens no transaction of its own, which would be separate from the server's", async () => {
  await expect(
    queriesOver(database)
      .transaction()
      .execute(async () => undefined),
  ).rejects.toThrow("transactions");
});

test("a query of Kysely is prepared once for a connection", async () => {
  await database.transaction(async (transaction) => {
    for (const status of ["idle", "busy"] as const) {
      await queriesOver(transaction)
        .selectFrom("threads")
        .select("metadata")
        .where("status", "=", status)
        .execute();
    }
    const prepared = await transaction.query<{ calls: string }>(
      `select generic_plans + custom_plans as calls from pg_prepared_statements where statement like 'select "metadata"%'`,
    );
    expect(prepared).toEqual([{ calls: "2" }]);
  });
});

test("a connection that a query of Kysely has lost counts as lost", async () => {
  const error: unknown = await database
    .transaction(async (transaction) => {
      const [{ pid } = { pid: 0 }] = await transaction.query<{ pid: number }>(
        "select pg_backend_pid() as pid",
      );
      await database.query("select pg_terminate_backend($1)", [pid]);
      await queriesOver(transaction).selectFrom("threads").selectAll().execute();
    })
    .catch((reason: unknown) => reason);
  expect(database.isLoss(error)).toBe(true);
});
