import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "../../../src/platform/database/database.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

let fresh: FreshDatabase;
beforeAll(async () => void (fresh = await freshDatabase()));
afterAll(() => fresh.drop());

describe("searches", () => {
  let database: Database;

  beforeAll(() => {
    database = openTestDatabase(fresh.connectionString, { poolSize: 10 });
  });
  afterAll(() => database.close());

  const LOCK = 4_711;
  const waitingForLock = async () =>
    Number(
      (
        await database.query<{ count: string }>(
          "select count(*) from pg_locks where locktype = 'advisory' and objid = $1 and not granted",
          [LOCK],
        )
      )[0]?.count,
    );

  it("are planned for their values, and not compiled; other statements are planned once", async () => {
    const planning =
      "select current_setting('plan_cache_mode') as cached, current_setting('jit') as jit, current_setting('statement_timeout') as most";
    expect(await database.boundedRead(planning)).toEqual([
      { cached: "force_custom_plan", jit: "off", most: "2s" },
    ]);
    expect(await database.query(planning)).toMatchObject([{ cached: "force_generic_plan", most: "0" }]);
  });

  it("end a statement that takes too long in the database, and asks for a narrower filter", async () => {
    const refused = await database.boundedRead("select pg_sleep(60)").catch((error: unknown) => error);
    expect(refused).toMatchObject({ kind: "invalid", message: expect.stringContaining("narrow the filter") });
    const left = await database.query(
      "select from pg_stat_activity where query like '%pg_sleep(60)' and state = 'active'",
    );
    expect(left).toEqual([]);
    // The limit ended with its transaction.
    expect(await database.query("show statement_timeout")).toEqual([{ statement_timeout: "0" }]);
  });

  it("refuse to write", async () => {
    await expect(database.boundedRead("create table mine ()")).rejects.toThrow("read-only transaction");
  });

  it("run two at a time, and drop a waiting read when its caller has disconnected", async () => {
    await database.transaction(async (holder) => {
      await holder.query("select pg_advisory_xact_lock($1)", [LOCK]);
      const caller = new AbortController();
      const lock = "select pg_advisory_xact_lock_shared($1)";
      const two = [1, 2].map(() => database.boundedRead(lock, [LOCK]).catch(() => "ended"));
      await eventually("two wait for the lock", async () => (await waitingForLock()) === 2);
      const fifth = database.boundedRead(lock, [LOCK], caller.signal);
      const reason = new Error("gone");
      caller.abort(reason);
      await expect(fifth).rejects.toBe(reason);
      expect(await waitingForLock()).toBeLessThanOrEqual(4);
      expect(await Promise.all(two)).toEqual(["ended", "ended"]);
    });
    expect(await database.boundedRead("select 1 as one")).toEqual([{ one: 1 }]);
  });
});
