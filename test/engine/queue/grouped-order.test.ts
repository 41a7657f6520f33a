import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { query } from "../../helpers/query.ts";
import { onTwoServers, type TwoServers } from "../../helpers/servers.ts";

let servers: TwoServers;
onTwoServers((opened) => (servers = opened));

const THREADS = 32;
const ROUNDS = 8;

/** Statements of several callers insert the same ids, in the order in which the callers came. */
const clash = async (create: (api: TwoServers["api"], threadId: string) => Promise<{ status: number }>) => {
  const statuses = new Set<number>();
  for (let round = 0; round < ROUNDS; round += 1) {
    const ids = Array.from({ length: THREADS }, () => randomUUID());
    const here = ids.map((id) => create(servers.api, id));
    const there = ids.toReversed().map((id) => create(servers.other, id));
    for (const { status } of await Promise.all([...here, ...there])) statuses.add(status);
  }
  return statuses;
};

const deadlocks = async (): Promise<number> => {
  const [row] = await query<{ deadlocks: string }>(
    servers.server,
    "select deadlocks from pg_stat_database where datname = current_database()",
  );
  return Number(row?.deadlocks);
};

test("two servers that create runs on the same new threads at once never block each other", async () => {
  const statuses = await clash((api, threadId) =>
    api.post(`/threads/${threadId}/runs`, { assistant_id: "agent", input: {}, if_not_exists: "create" }),
  );
  expect([...statuses]).toEqual([200]);
  expect(await deadlocks()).toBe(0);
});
