import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from "vitest";
import { apiOf, textsOf, type Api, type Result } from "../helpers/api.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { eventually } from "../helpers/conditions.ts";
import { PATIENT_LEASES } from "../helpers/leases.ts";
import { query } from "../helpers/query.ts";
import { readStream } from "../helpers/server-sent-events.ts";

/** A temporary error of the database costs a run no attempt and its caller no answer. */

let server: TestServer;
let api: Api;
beforeAll(async () => {
  // A lost lease must not be regained within a test.
  server = await startTestServer({ leaseSeconds: 30, heartbeatSeconds: 5 });
  api = apiOf(server);
});
afterAll(() => server.close());
afterEach(async () => {
  await query(server, "drop function if exists refuse cascade");
  await query(server, "drop sequence if exists refusals");
});

const REFUSED_TIMES = 3;

/** The next few statements of this kind are refused with that code. */
const refuse = async (code: string, when: string): Promise<void> => {
  await query(server, "create sequence refusals");
  await query(
    server,
    `create function refuse() returns trigger language plpgsql as $$ begin
       if nextval('public.refusals') <= ${REFUSED_TIMES} then
         raise exception 'not now' using errcode = '${code}';
       end if;
       return new;
     end $$`,
  );
  await query(server, `create trigger refuse before ${when} execute function refuse()`);
};
const untilRefusedAtAll = (): Promise<true | undefined> =>
  eventually("the statement was refused as often as it should be", async () => {
    const [row] = await query<{ times: number }>(
      server,
      "select last_value::int as times from public.refusals",
    );
    return (row?.times ?? 0) > REFUSED_TIMES ? true : undefined;
  });

const DEADLOCK = "40P01";
const NOT_SERIALIZABLE = "40001";
const DEMOTED = "25006";
const DISK_FULL = "53100";

const WHEN = {
  created: "insert on threadloom.runs for each row",
  claimed: "update on threadloom.runs for each row when (old.status = 'pending' and new.status = 'running')",
  ended: "update on threadloom.runs for each row when (new.status = 'success')",
  logged: "insert on threadloom.run_events for each row",
  "given a checkpoint": "insert on threadloom.checkpoints for each row",
};
const CASES: [string, keyof typeof WHEN][] = [
  [DEADLOCK, "created"],
  [NOT_SERIALIZABLE, "created"],
  [DEADLOCK, "ended"],
  [NOT_SERIALIZABLE, "ended"],
  [DEMOTED, "ended"],
  [DISK_FULL, "ended"],
  [DEADLOCK, "logged"],
  [DEMOTED, "logged"],
  [DEMOTED, "given a checkpoint"],
  [DISK_FULL, "given a checkpoint"],
];

test.each(CASES)("a run continues in its first attempt after %s while it is %s", async (code, moment) => {
  const threadId = await api.aThread();
  await refuse(code, WHEN[moment]);
  const answer = await api.post<Result>(`/threads/${threadId}/runs/wait`, {
    assistant_id: "two-step",
    input: { messages: [] },
    stream_resumable: true,
  });
  expect(answer.text).not.toContain("__error__");
  expect(answer.status).toBe(200);
  expect(textsOf(answer.body.messages)).toEqual(["first", "second"]);
  expect(
    await query(server, "select status, attempt from threadloom.runs where thread_id = $1", [threadId]),
  ).toEqual([{ status: "success", attempt: 1 }]);
  await untilRefusedAtAll();
  const [run] = await api.runs(threadId);
  const events = await readStream(`${server.url}/threads/${threadId}/runs/${run?.run_id}/stream`, {
    headers: { "last-event-id": "-1" },
  });
  expect(events.map(({ id }) => id)).toEqual(events.map((_, index) => index));
});

test("a temporarily refused claim is retried, and is not logged as an error", async () => {
  const threadId = await api.aThread();
  const blocker = await api.aRun(threadId, { assistant_id: "sleep", input: { milliseconds: 600_000 } });
  const waiting = await api.aRun(threadId, { assistant_id: "two-step", input: { messages: [] } });
  await refuse(DEADLOCK, WHEN.claimed);
  await api.cancel(threadId, blocker.run_id);
  await api.untilRunIs(threadId, waiting.run_id, "success");
  expect(server.lines.filter((line) => line.includes("runs could not be claimed"))).toEqual([]);
});

test("a database that refuses writes for longer than a lease costs no attempt: the owner may renew first", async () => {
  const briefly = await startTestServer(PATIENT_LEASES);
  onTestFinished(() => briefly.close());
  const brief = apiOf(briefly);
  const threadId = await brief.aThread();
  const run = await brief.aRun(threadId, { assistant_id: "sleep", input: { milliseconds: 600_000 } });
  const leaseIs = async (condition: string): Promise<boolean> => {
    const found = await query(
      briefly,
      `select from threadloom.runs where run_id = $1 and (attempt > 1 or status <> 'running' or ${condition})`,
      [run.run_id],
    );
    return found.length > 0;
  };
  await brief.untilRunIs(threadId, run.run_id, "running");
  await query(
    briefly,
    "create function refuse() returns trigger language plpgsql as $$ begin raise exception 'a standby' using errcode = '25006'; end $$",
  );
  await query(
    briefly,
    "create trigger refuse before update on threadloom.runs for each statement execute function refuse()",
  );
  await eventually("the lease is over", () => leaseIs("lease_until < now()"));
  await query(briefly, "drop function refuse cascade");
  await eventually("the lease is renewed, or lost", () => leaseIs("lease_until > now()"));
  expect(
    await query(briefly, "select status, attempt, lost_attempts from threadloom.runs where run_id = $1", [
      run.run_id,
    ]),
  ).toEqual([{ status: "running", attempt: 1, lost_attempts: 0 }]);
});
