import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { query } from "../../helpers/query.ts";

/*
 * An update of a row that changes no indexed column is "HOT": it touches no index. PostgreSQL counts them, so the figures don't depend on
 * the machine. See docs/decisions/011-threads-updated-in-place.md.
 */

const TURNS = 8;
const KINDS = [
  { metadata: { title: "A conversation" } },
  // PostgreSQL compresses these metadata in the row.
  { metadata: { notes: "word ".repeat(2_000) } },
  // PostgreSQL stores these metadata outside the row.
  { metadata: { notes: randomBytes(8_000).toString("base64") } },
  { ttl: { strategy: "delete", ttl: 60 } },
];

let database: FreshDatabase;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.drop());

interface Counted {
  updates: number;
  hot: number;
}

const counted = async (): Promise<Counted> => {
  const [row] = await query<Counted>(
    database,
    `select n_tup_upd::float8 as updates, n_tup_hot_upd::float8 as hot
     from pg_stat_user_tables where relname = 'threads'`,
  );
  return row ?? { updates: 0, hot: 0 };
};

/** Starts a server of its own, because connections report their statistics at the latest when they close. */
const withServer = async <Result>(work: (api: Api) => Promise<Result>): Promise<Result> => {
  const server = await startTestServer({ connectionString: database.connectionString });
  try {
    return await work(apiOf(server));
  } finally {
    await server.close();
  }
};

const turn = async (api: Api, threads: readonly string[]): Promise<void> => {
  const body = { assistant_id: "counter", input: {} };
  await Promise.all(threads.map((threadId) => api.aFinishedRun(threadId, body)));
};

describe("a run on a thread with earlier runs", () => {
  test("changes its thread's row twice without touching an index", async () => {
    const threads = await withServer(async (api) => {
      const made = await Promise.all([...KINDS, ...KINDS].map((fields) => api.aThread(fields)));
      await turn(api, made);
      return made;
    });
    const updates = threads.length * TURNS * 2;
    await eventually(
      "the first runs are counted",
      async () => (await counted()).updates >= threads.length * 2,
    );
    const shareOfHot = async (): Promise<number> => {
      const before = await counted();
      await withServer(async (api) => {
        for (let count = 0; count < TURNS; count += 1) await turn(api, threads);
      });
      const after = await eventually("the others are counted", async () => {
        const found = await counted();
        return found.updates >= before.updates + updates ? found : undefined;
      });
      expect(after.updates - before.updates).toBe(updates);
      return (after.hot - before.hot) / updates;
    };
    // Not all: a page may be full for a moment. The next ten minutes may begin in one of the two rounds.
    expect(Math.max(await shareOfHot(), await shareOfHot())).toBeGreaterThan(0.8);
  });
});
