import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Database } from "../../../src/platform/database/database.ts";
import { searchAddressesOf, withSessionSettings } from "../../../src/platform/database/session-settings.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

let fresh: FreshDatabase;
beforeAll(async () => void (fresh = await freshDatabase()));
afterAll(() => fresh.drop());

describe.each(["in a transaction each", "on connections of their own"])("searches %s", (how) => {
  let database: Database;

  beforeAll(async () => {
    const { connectionString } = fresh;
    const withSettings = await withSessionSettings(connectionString);
    const direct = how === "on connections of their own";
    const searchAddresses = searchAddressesOf(connectionString, withSettings, { direct });
    database = openTestDatabase(withSettings, { poolSize: 10, searchAddresses });
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

  it("are planned with any plan, and the others by indexes", async () => {
    const planning =
      "select current_setting('enable_seqscan') as whole, current_setting('enable_bitmapscan') as bitmaps, " +
      "current_setting('plan_cache_mode') as cached, current_setting('jit') as jit";
    const any = { whole: "on", bitmaps: "on", cached: "force_custom_plan", jit: "off" };
    expect(await database.boundedRead(planning)).toEqual([any]);
    expect(await database.query(planning)).toEqual([
      { whole: "off", bitmaps: "off", cached: "force_generic_plan", jit: "off" },
    ]);
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

it("are planned for their values, or, where a search says so, once for all values", async () => {
  const withSettings = await withSessionSettings(fresh.connectionString);
  const searchAddresses = searchAddressesOf(fresh.connectionString, withSettings, { direct: true });
  const database = openTestDatabase(withSettings, { searchAddresses });
  const PLANS =
    "select custom_plans::int as custom, generic_plans::int as generic from pg_prepared_statements where statement = $1";
  const STATEMENT = "select $1::int as value";
  const plans = await database.boundedReads(async (read, readPlannedOnce) => {
    for (const each of [read, readPlannedOnce])
      for (let value = 0; value < 8; value += 1) await each(STATEMENT, [value]);
    return [await read(PLANS, [STATEMENT]), await readPlannedOnce(PLANS, [STATEMENT])];
  });
  expect(plans).toEqual([[{ custom: 8, generic: 0 }], [{ custom: 0, generic: 8 }]]);
  await database.close();
});
