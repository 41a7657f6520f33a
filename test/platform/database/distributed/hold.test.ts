import pg from "pg";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { holdShards } from "../../../../src/platform/database/distributed/hold.ts";
import { newId } from "../../../../src/platform/lib/ids.ts";
import { eventually } from "../../../helpers/conditions.ts";
import { freshDatabase, type FreshDatabase } from "../../../helpers/database.ts";

/** The locks of a process on a node. Advisory locks stand for those of Citus. */

const SHARD = 4711;

let fresh: FreshDatabase;
/** Looks at the locks. */
let watcher: pg.Client;
/** Moves a shard. */
let mover: pg.Client;
beforeAll(async () => {
  fresh = await freshDatabase();
  const connect = async () => {
    const client = new pg.Client({ connectionString: fresh.connectionString });
    client.on("error", () => undefined);
    await client.connect();
    return client;
  };
  watcher = await connect();
  mover = await connect();
  await watcher.query(`create function public.lock_shard_metadata(mode integer, shards bigint[]) returns void
    language sql as $$ select pg_advisory_xact_lock_shared(shard) from unnest(shards) shard $$`);
});
afterAll(async () => {
  await mover.end();
  await watcher.end();
  await fresh.drop();
});

const hold = (processId: string) =>
  holdShards({
    connectionString: fresh.connectionString,
    processId,
    shards: async () => [String(SHARD)],
    learnPlaces: async () => undefined,
    isGone: async () => false,
    onFailure: () => undefined,
    logger: pino({ level: "silent" }),
  });

/** As sweeps look for the dead. */
const lives = async (processId: string): Promise<boolean> => {
  const { rows } = await watcher.query<{ lives: boolean }>(
    `select exists (select from pg_locks where locktype = 'advisory' and granted
      and (classid::bigint << 32 | objid::bigint) = hashtextextended($1, 0)) as lives`,
    [processId],
  );
  return rows[0]!.lives;
};

test("a process shows each node that it uses that it lives, until it ends", async () => {
  const processId = newId();
  const held = hold(processId);
  await held.during(async () => expect(await lives(processId)).toBe(true));
  held.close();
  await eventually("its lock is free", async () => !(await lives(processId)));
});

test("a process that waits for the move of a shard still shows that it lives", async () => {
  const processId = newId();
  const held = hold(processId);
  await held.during(() => Promise.resolve());
  await mover.query("begin");
  await mover.query("select pg_advisory_xact_lock($1)", [SHARD]);
  expect(held.isHeld).toBe(false);
  await eventually("the process waits for the shard", async () => {
    const { rows } = await watcher.query("select from pg_locks where not granted and objid = $1", [SHARD]);
    return rows.length > 0;
  });
  expect(await lives(processId)).toBe(true);
  await mover.query("commit");
  await held.during(async () => expect(await lives(processId)).toBe(true));
  held.close();
});
