import { expect, onTestFinished, test } from "vitest";
import pg from "pg";
import { newId } from "../../src/platform/lib/ids.ts";
import { startTestServer } from "../helpers/app.ts";
import { eventually } from "../helpers/conditions.ts";
import { freshDatabase } from "../helpers/database.ts";
import { query } from "../helpers/query.ts";
import { ENGINE_GRAPHS } from "./graphs/config-file.ts";
import { notedSteps } from "./graphs/noted.ts";

/** A database that cancels slow statements, as many are configured, and a lock that makes all statements slow. */

const RUNS = 6;
const TIME_OUT_MS = 100;
/** More cancels than runs would survive if they gave up at the first cancelled statement of each kind. */
const CANCELLED_AT_LEAST = 60;

test("runs outlast a lock behind which the database cancels their statements, each in its first attempt", async () => {
  const fresh = await freshDatabase();
  onTestFinished(() => fresh.drop());
  const { connectionString } = fresh;
  const name = new URL(connectionString).pathname.slice(1);
  await query(fresh, `alter database ${name} set statement_timeout = ${TIME_OUT_MS}`);
  const options = { connectionString, graphConfigFile: ENGINE_GRAPHS };
  const servers = [await startTestServer(options), await startTestServer(options)];
  onTestFinished(async () => void (await Promise.all(servers.map((server) => server.close()))));
  const locker = new pg.Client({ connectionString });
  await locker.connect();
  onTestFinished(() => locker.end());

  /** On a busy machine the database may cancel statements of the request itself. */
  const aStream = async (url: string, threadId: string): Promise<Response> => {
    for (;;) {
      const response = await fetch(`${url}/threads/${threadId}/runs/stream`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          assistant_id: "noted-steps",
          input: {},
          stream_resumable: true,
          if_not_exists: "create",
        }),
      });
      if (response.status !== 503) return response;
      await response.text();
    }
  };
  const runs = await Promise.all(
    Array.from({ length: RUNS }, async (_, index) => {
      const response = await aStream(servers[index % servers.length]!.url, newId());
      return { text: response.text() };
    }),
  );
  await eventually("all of them take steps", () => notedSteps().length > RUNS * 3);
  await locker.query("set statement_timeout = 0");
  await locker.query("begin");
  await locker.query("lock table threadloom.runs in access exclusive mode");
  const cancelled = async (): Promise<number> => {
    const [row] = (
      await locker.query<{ rollbacks: string }>(
        "select pg_stat_clear_snapshot(), xact_rollback as rollbacks from pg_stat_database where datname = current_database()",
      )
    ).rows;
    return Number(row?.rollbacks);
  };
  const before = await cancelled();
  await eventually(
    "many statements were cancelled",
    async () => (await cancelled()) - before >= CANCELLED_AT_LEAST,
  );
  await locker.query("commit");

  const texts = await Promise.all(runs.map(({ text }) => text));
  for (const text of texts) expect(text).not.toContain("event: error");
  const rows = await eventually("all runs have ended", async () => {
    const found = await query<{ status: string; attempt: number }>(
      fresh,
      "select status, attempt from threadloom.runs",
    );
    return found.every(({ status }) => status !== "running" && status !== "pending") ? found : undefined;
  });
  expect(rows).toEqual(Array(RUNS).fill({ status: "success", attempt: 1 }));
  const steps = notedSteps();
  expect(new Set(steps).size).toBe(steps.length);
  expect(steps).toHaveLength(RUNS * 20);
});
