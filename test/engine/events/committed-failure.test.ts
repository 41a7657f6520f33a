import pg from "pg";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RunRecord } from "../../../src/api/runs/schemas.ts";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { isSomeWaiting } from "../../helpers/locks.ts";
import { openStream, type EventStream } from "../../helpers/server-sent-events.ts";

/** Whoever holds this advisory lock keeps failed runs from ending. */
const END = 4_711;

let server: TestServer;
let replica: TestServer;
let api: Api;
let holder: pg.Client;
beforeAll(async () => {
  const graphConfigFile = fileURLToPath(new URL("./graphs/langgraph.json", import.meta.url));
  server = await startTestServer({ graphConfigFile });
  replica = await startTestServer({
    graphConfigFile,
    connectionString: server.connectionString,
    role: "api",
  });
  api = apiOf(server);
  holder = new pg.Client(server.connectionString);
  await holder.connect();
  await holder.query(`create function public.wait_for_end() returns trigger language plpgsql as $$ begin
    if new.status = 'error' then perform pg_advisory_xact_lock(${END}); end if; return new; end $$`);
  await holder.query(
    "create trigger wait_for_end before update on threadloom.runs for each row execute function public.wait_for_end()",
  );
});
afterAll(async () => {
  await holder.end();
  await replica.close();
  await server.close();
});

const RUN = {
  assistant_id: "breaking",
  input: { how: "burst", count: 3, bytes: 1, stays: false },
  stream_mode: ["custom", "values"],
};

const say = async (text: string) => (await holder.query(text)).rows as never[];

describe.each([false, true])("of a failed run with stream_resumable: %s", (stream_resumable) => {
  const body = { ...RUN, stream_resumable };

  /** Lets the run end once it waits for that. The `error` event must not come before. */
  const expectEndFirst = async (stream: EventStream, threadId: string): Promise<void> => {
    let mayEnd = false;
    const hadEnded = stream.until(({ event }) => event === "error").then(() => mayEnd);
    await eventually("the end of the run waits", () => isSomeWaiting(say));
    const [run] = (await api.get<RunRecord[]>(`/threads/${threadId}/runs`)).body;
    expect(run).toMatchObject({ status: "running" });
    mayEnd = true;
    await holder.query(`select pg_advisory_unlock(${END})`);
    expect(await hadEnded).toBe(true);
    expect((await api.get(`/threads/${threadId}/runs/${run!.run_id}`)).body).toMatchObject({
      status: "error",
    });
    expect((await api.get(`/threads/${threadId}`)).body).toMatchObject({ status: "error" });
    expect(await stream.next()).toBeUndefined();
  };

  test.each(["its creator", "a reader that joins it", "a reader at another server"])(
    "the `error` event reaches %s once the end is stored",
    async (who) => {
      await holder.query(`select pg_advisory_lock(${END})`);
      const threadId = await api.aThread();
      const runs = `/threads/${threadId}/runs`;
      if (who === "its creator") {
        const stream = await openStream(`${server.url}${runs}/stream`, { body });
        return await expectEndFirst(stream, threadId);
      }
      const earlier = await api.aRun(threadId, { ...RUN, input: { ...RUN.input, stays: true } });
      const run = await api.aRun(threadId, body);
      const { url } = who === "a reader at another server" ? replica : server;
      const stream = await openStream(`${url}${runs}/${run.run_id}/stream`);
      await api.cancel(threadId, earlier.run_id);
      await expectEndFirst(stream, threadId);
    },
  );
});
