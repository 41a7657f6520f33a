import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { grantVisibility, type Condition, whereVisible } from "../../src/access/visibility.ts";
import { queriesOver } from "../../src/platform/database/queries.ts";
import type { Database } from "../../src/platform/database/database.ts";
import { statement } from "../../src/platform/database/statement.ts";
import { freshDatabase, type FreshDatabase } from "../helpers/database.ts";
import { openTestDatabase } from "../helpers/test-database.ts";

const SCHEMA = "threadloom";
const MINE = "00000000-0000-7000-8000-000000000001";
const THEIRS = "00000000-0000-7000-8000-000000000002";

/** The condition that a filter `{owner: …}` becomes. */
const owned =
  (owner: string): Condition =>
  (metadata, parameter) =>
    `${metadata} @> jsonb_build_object('owner', ${parameter(owner)}::text) or ${metadata} @> ${parameter('{"shared":true}')}::jsonb`;

let fresh: FreshDatabase;
let database: Database;
beforeAll(async () => {
  fresh = await freshDatabase();
  database = openTestDatabase(fresh.connectionString, { schema: SCHEMA, poolSize: 2 });
  await database.query(
    `insert into threadloom.threads (thread_id, metadata) values ($1, '{"owner":"me"}'), ($2, '{"owner":"them"}')`,
    [MINE, THEIRS],
  );
});
afterAll(async () => {
  await database.close();
  await fresh.drop();
});

describe("a visibility", () => {
  test("is a condition of a raw statement, after its own parameters", async () => {
    const visible = grantVisibility("threads", owned("me")).on("thread.metadata");
    const find = statement(
      { threadId: "uuid", visible: "fragment" },
      (sql) =>
        `select thread_id from threadloom.threads thread where thread_id = ${sql.threadId} and ${sql.visible}`,
    );
    expect(await find.query(database, { threadId: MINE, visible })).toEqual([{ thread_id: MINE }]);
    expect(await find.query(database, { threadId: THEIRS, visible })).toEqual([]);
  });

  test("is a condition of a Kysely query, beside its own conditions", async () => {
    const visibility = grantVisibility("threads", owned("them"));
    const found = await queriesOver(database)
      .selectFrom("threads")
      .select("thread_id")
      .where("thread_id", "in", [MINE, THEIRS])
      .where(whereVisible(visibility, "metadata"))
      .where("status", "=", "idle")
      .execute();
    expect(found).toEqual([{ thread_id: THEIRS }]);
  });

  test("can check another table, which is not read if everything is visible", () => {
    const within = (condition: string) =>
      `exists (select from threadloom.threads thread where thread.thread_id = run.thread_id and (${condition}))`;
    const all = grantVisibility("threads");
    expect(all.on("thread.metadata", within)).toEqual({ texts: ["true"], values: [] });
    const some = grantVisibility("threads", (metadata, parameter) => `${metadata} @> ${parameter("{}")}`);
    const { texts, values } = some.on("thread.metadata", within);
    expect(texts.join("?")).toBe(`(${within("thread.metadata @> ?")})`);
    expect(values).toEqual(["{}"]);
  });
});
