import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { openDatabase } from "../../../src/platform/database/database.ts";
import { openSignals, type Signal } from "../../../src/platform/database/signals.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { apiOf, saying, textsOf, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { namesOf, openStream, readStream } from "../../helpers/server-sent-events.ts";
import { query } from "../../helpers/query.ts";
import { findPgbouncer, openings, startPooler, type Pooler } from "./pgbouncer.ts";

const program = await findPgbouncer();
/** Less than one server needs, so that connections are really shared. */
const POOL_SIZE = 5;
const RUNS_AT_ONCE = 40;
const logger = pino({ level: "silent" });
const { keep, aDatabase, tidyUp } = openings();
const PASSWORD = decodeURIComponent(new URL(inject("serverUrl")).password);

interface Mode {
  how: string;
  preparedStatements: boolean;
  possible: boolean;
}
const modes: Mode[] = [
  {
    how: "without prepared statements (DATABASE_PREPARED_STATEMENTS=false)",
    preparedStatements: false,
    possible: program !== undefined,
  },
  {
    how:
      program?.knowsPreparedStatements === false
        ? "with prepared statements: not run, PgBouncer 1.21 is needed"
        : "with prepared statements",
    preparedStatements: true,
    possible: program?.knowsPreparedStatements === true,
  },
];

const MISSING =
  "not run: there is no pgbouncer on the PATH or in /usr/sbin (the Debian package has that name), and TEST_PGBOUNCER names none";
// Only some reporters show the names of skipped tests.
if (program === undefined) process.stderr.write(`test/platform/database/pooler.test.ts: ${MISSING}\n`);
describe.runIf(program === undefined)("behind a pooler in transaction mode", () => {
  test(MISSING, ({ skip }) => skip(MISSING));
});

for (const { how, preparedStatements, possible } of modes) {
  describe.runIf(possible)(
    `two servers behind PgBouncer ${program?.version} in transaction mode, ${how}`,
    () => {
      let direct: string;
      let pooler: Pooler;
      let server: TestServer;
      let api: Api;
      let other: Api;
      beforeAll(async () => {
        direct = await aDatabase();
        pooler = await keep(
          startPooler({
            program: program!,
            connectionString: direct,
            poolSize: POOL_SIZE,
            preparedStatements,
          }),
        );
        const behind = {
          connectionString: pooler.connectionString,
          databaseDirectUrl: direct,
          databasePreparedStatements: preparedStatements,
        };
        server = await keep(startTestServer(behind));
        api = apiOf(server);
        other = apiOf(await keep(startTestServer(behind)));
      });
      afterAll(tidyUp);

      test("share its few connections for many runs: waited for, in the background, streamed", async () => {
        const input = saying("hi");
        const results = await Promise.all(
          Array.from({ length: RUNS_AT_ONCE }, async (_, index) => {
            const [here, there] = index % 2 === 0 ? [api, other] : [other, api];
            const threadId = await here.aThread();
            if (index % 3 === 0) await here.aFinishedRun(threadId, { assistant_id: "two-step", input });
            else if (index % 3 === 1) {
              const run = await here.aRun(threadId, { assistant_id: "two-step", input });
              await there.join(threadId, run.run_id);
            } else {
              const events = await readStream(`${here.url}/threads/${threadId}/runs/stream`, {
                body: { assistant_id: "two-step", input, stream_mode: "updates" },
              });
              expect(namesOf(events)).toEqual(["metadata", "updates", "updates"]);
            }
            return textsOf((await there.state(threadId)).values.messages);
          }),
        );
        expect(results).toEqual(Array.from(results, () => ["hi", "first", "second"]));
        expect(await pooler.countClients()).toBeGreaterThan(POOL_SIZE);
        const [backends] = await query<{ shared: number; listeners: number }>(
          { connectionString: direct },
          `select count(*) filter (where application_name <> 'threadloom listener')::int as shared,
                count(*) filter (where application_name = 'threadloom listener')::int as listeners
         from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
        );
        expect(backends?.listeners).toBe(2);
        expect(backends?.shared).toBeLessThanOrEqual(POOL_SIZE);
      });

      test("hold their locks on the listening connections, and none on those of the pooler", async () => {
        const holders = await query<{ name: string }>(
          { connectionString: direct },
          `select a.application_name as name from pg_locks l join pg_stat_activity a using (pid)
         where l.locktype = 'advisory' and a.datname = current_database()`,
        );
        expect(holders).toEqual([{ name: "threadloom listener" }, { name: "threadloom listener" }]);
        expect(
          await query(
            { connectionString: direct },
            "select from pg_stat_activity where datname = current_database() and query ilike 'listen%' and application_name <> 'threadloom listener'",
          ),
        ).toEqual([]);
      });

      test("notify each other without waiting for a poll", async () => {
        const open = async () => {
          const database = openDatabase({
            connectionString: pooler.connectionString,
            poolSize: 2,
            applicationName: "threadloom",
            preparedStatements,
            logger,
          });
          await keep(database);
          return await keep(openSignals({ database, connectionString: direct, processId: newId(), logger }));
        };
        const [one, another] = [await open(), await open()];
        const received: Signal[] = [];
        another.subscribe((signal) => received.push(signal));
        const sent: Signal = { kind: "available", threadId: newId(), runId: newId() };
        one.send(sent);
        expect(
          await eventually("the signal arrives", () => received.find(({ runId }) => runId === sent.runId)),
        ).toEqual(sent);
      });

      test("answer a run's interrupt on the other server", async () => {
        const threadId = await api.aThread();
        await api.aFinishedRun(threadId, { assistant_id: "approval", input: saying("a refund") });
        expect(await other.thread(threadId)).toMatchObject({ status: "interrupted" });
        const result = await other.aFinishedRun(threadId, {
          assistant_id: "approval",
          command: { resume: { decision: "approve" } },
        });
        expect(result).toMatchObject({ status: "sent" });
      });

      test("follow a stream on the other server, cut it, resume it there, and cancel the run", async () => {
        const threadId = await api.aThread();
        const stream = await openStream(`${api.url}/threads/${threadId}/runs/stream`, {
          body: {
            assistant_id: "sleep",
            input: { milliseconds: 600_000 },
            stream_mode: "custom",
            stream_resumable: true,
          },
        });
        const seen = await stream.until(({ id }) => id === 2);
        stream.close();
        const path = (stream.headers.get("content-location") ?? "").replace(/\/stream$/, "");
        const runId = path.split("/").at(-1) ?? "";
        const resumed = await openStream(`${other.url}/threads/${threadId}/runs/${runId}/stream`, {
          headers: { "last-event-id": String(seen.id) },
        });
        expect((await resumed.next())?.id).toBe(3);
        await resumed.until(({ id }) => id === 6);
        expect((await other.cancel(threadId, runId)).status).toBeLessThan(300);
        await resumed.rest();
        expect((await api.run(threadId, runId)).status).toBe("interrupted");
      });

      test("update and read states and histories", async () => {
        const threadId = await api.aThread();
        await api.aFinishedRun(threadId, { assistant_id: "counter", input: { count: 1 } });
        await other.post(`/threads/${threadId}/state`, { values: { count: 40 } });
        expect((await api.state(threadId)).values).toMatchObject({ count: 42 });
        expect((await other.history(threadId)).map(({ values }) => values["count"])).toEqual([42, 2, 1, 0]);
        expect((await api.post(`/threads/${threadId}/copy`)).status).toBe(200);
      });

      test("store items on one server and find them on the other", async () => {
        const put = await fetch(`${api.url}/store/items`, {
          method: "PUT",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ namespace: ["users", "ada"], key: "likes", value: { tea: true } }),
        });
        expect(put.status).toBe(204);
        const found = await other.post<{ items: { value: unknown }[] }>("/store/items/search", {
          namespace_prefix: ["users"],
          filter: { tea: true },
        });
        expect(found.body.items).toMatchObject([{ value: { tea: true } }]);
      });

      test("keep their runs through a restart of the pooler", async () => {
        const threadId = await api.aThread();
        const run = await api.aRun(threadId, { assistant_id: "ten-steps", input: {} });
        const asleep = await api.aRun(await api.aThread(), {
          assistant_id: "sleep",
          input: { milliseconds: 1_500 },
        });
        await pooler.kill();
        await pooler.start();
        const statusOf = (of: { thread_id: string; run_id: string }) =>
          eventually("the run has ended", async () => {
            const { status } = await other.run(of.thread_id, of.run_id).catch(() => ({ status: "unknown" }));
            return ["pending", "running", "unknown"].includes(status) ? undefined : status;
          });
        expect(await Promise.all([statusOf(run), statusOf(asleep)])).toEqual(["success", "success"]);
      });

      test("write no password to the log", () => {
        expect(server.lines.length).toBeGreaterThan(10);
        expect(server.lines.filter((line) => line.includes(PASSWORD))).toEqual([]);
      });
    },
  );
}
