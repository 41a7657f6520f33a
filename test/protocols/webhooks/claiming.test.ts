import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { Database } from "../../../src/platform/database/database.ts";
import {
  createDeliveries,
  type ClaimOptions,
  type Deliveries,
} from "../../../src/engine/outbox/deliveries.ts";
import { receiverOf, webhookParts } from "../../../src/platform/domain/webhook-address.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";

/** The choice among due deliveries when one user has most of them. */

let fresh: FreshDatabase;
let database: Database;
let deliveries: Deliveries;
beforeAll(async () => {
  fresh = await freshDatabase();
  database = openTestDatabase(fresh.connectionString);
  deliveries = createDeliveries(database);
});
afterAll(async () => {
  await database.close();
  await fresh.drop();
});
beforeEach(async () => {
  await database.query("delete from threadloom.deliveries");
});

interface Given {
  caller?: string;
  receiver?: string;
  due?: number;
  attempts?: number;
  /** Seconds ago; in three days if left out. */
  over?: number;
  kwargs?: string;
}
const store = async (...given: Given[]): Promise<string[]> => {
  const ids = given.map(() => randomUUID());
  const rows = given.map((fields, index) => ({ run_id: ids[index], ...fields }));
  await database.query(
    `insert into threadloom.deliveries (delivery_id, kind, run_id, thread_id, assistant_id, graph_id, url, receiver, caller, run_status,
       metadata, config, context, kwargs, multitask_strategy, run_created_at, values_omitted, due_at, attempts, give_up_at)
     select run_id, 'webhook', run_id, run_id, run_id, 'counter', 'https://hooks.example.com/', coalesce(receiver, run_id::text),
       coalesce(caller, ''), 'success', '{}', '{}', '{}', coalesce(kwargs, '{}'), 'enqueue', now(), false,
       now() - make_interval(secs => coalesce(due, 1)), coalesce(attempts, 0),
       now() - make_interval(secs => coalesce(over, -259200))
     from json_to_recordset($1::json) as given (run_id uuid, receiver text, caller text, due float8, attempts int, over float8,
       kwargs json)`,
    [JSON.stringify(rows)],
  );
  return ids;
};
const places = { receiver: 4, caller: 8 };
const claim = (options: Partial<ClaimOptions> = {}) =>
  deliveries.claim({ limit: 16, places, underWay: [], own: true, leaseSeconds: 60, ...options });
const many = (count: number, given: Given): Given[] => Array.from({ length: count }, () => given);

test("a caller with a hundred receivers gets half of the places, and callers without a name all", async () => {
  await store(...many(100, { caller: "user:one" }));
  const { held } = await claim();
  expect(held).toHaveLength(8);
  expect((await claim({ underWay: held })).held).toEqual([]);
  await store(...many(100, { caller: "" }));
  expect((await claim({ underWay: held })).held).toHaveLength(16);
});

test("a caller with a thousand due deliveries before all others comes first once, not a thousand times", async () => {
  await store(...many(1_000, { caller: "user:one", due: 100 }));
  const others = await store(
    { caller: "user:two" },
    { caller: "" },
    { caller: "key:one" },
    { caller: "user:0" },
  );
  const { held } = await claim({ limit: 5 });
  const taken = held.map(({ id }) => id);
  expect(taken).toEqual(expect.arrayContaining(others));
  expect(new Set(held.map(({ caller }) => caller)).size).toBe(5);
  // Running deliveries count: the next free place is for another caller.
  const [next] = await store({ caller: "user:three" });
  expect((await claim({ limit: 1, underWay: held })).held.map(({ id }) => id)).toEqual([next]);
});

test("of thousands of callers that wait for a failing receiver, each is tried in time", async () => {
  const waiting = Array.from({ length: 500 }, (_, index) => ({
    caller: `user:${index.toString(16)}`,
    due: -3_600,
  }));
  await store(...waiting, ...many(300, { caller: "user:a", due: 100, receiver: "hangs" }));
  const [late] = await store({ caller: "user:f" });
  const underWay = many(4, {}).map(() => ({ caller: "", receiver: "hangs" }));
  const taken: string[] = [];
  for (let claims = 0; claims < 200 && taken.length === 0; claims++)
    taken.push(...(await claim({ underWay })).held.map(({ id }) => id));
  expect(taken).toEqual([late]);
});

test("a host has its places, whatever its ports", async () => {
  const parts = webhookParts("given.url");
  const urls = [
    ["http://127.0.0.1:3001/hook", "127.0.0.1"],
    ["http://127.0.0.1:3002/hook?a=b:c", "127.0.0.1"],
    ["https://user:password@hooks.example.com:8443/", "hooks.example.com"],
    ["https://hooks.example.com", "hooks.example.com"],
    ["http://[2606:4700::1111]:8080/", "[2606:4700::1111]"],
    ["http://[2606:4700::1111]/", "[2606:4700::1111]"],
    ["/hook:1", ""],
  ] as const;
  const rows = await database.query<{ receiver: string }>(
    `select ${parts.receiver} as receiver from unnest($1::text[]) as given(url)`,
    [urls.map(([url]) => url)],
  );
  expect(rows.map(({ receiver }) => receiver)).toEqual(urls.map(([, receiver]) => receiver));
  expect(urls.map(([url]) => receiverOf(url))).toEqual(urls.map(([, receiver]) => receiver));
});

test("a delivery without a stored result after three days is given up by the next claim, and an untried one is tried", async () => {
  const [poisoned, untried] = await store({ attempts: 7, over: 1 }, { over: 1 });
  const { held, givenUp } = await claim();
  expect(givenUp.map(({ id }) => id)).toEqual([poisoned]);
  expect(held.map(({ id }) => id)).toEqual([untried]);
  const [row] = await database.query(
    "select state, last_error, settled_at is not null as settled from threadloom.deliveries where run_id = $1",
    [poisoned],
  );
  expect(row).toEqual({
    state: "failed",
    last_error: "The result of the last try was not stored.",
    settled: true,
  });
});
