import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apiOf, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { query } from "../../helpers/query.ts";

/* A step is stored with its events in the log, or not at all. Here the log refuses the events of the fourth step for good. */

const REFUSE = `
create function public.refuse() returns trigger language plpgsql as $$
begin
  if new.event = 'updates' and (select count(*) from threadloom.run_events e
      where e.thread_id = new.thread_id and e.run_id = new.run_id and e.event = 'updates') >= 3 then
    raise exception 'no' using errcode = 'P0001';
  end if;
  return new;
end $$;
create trigger refuse before insert on threadloom.run_events for each row execute function public.refuse()`;

describe.each([
  ["in the server's own process", 0],
  ["in a graph process", 1],
])("%s", (_, graphProcesses) => {
  let server: TestServer;
  let api: Api;
  beforeAll(async () => {
    server = await startTestServer({ graphProcesses });
    api = apiOf(server);
    await query(server, REFUSE);
  });
  afterAll(() => server.close());

  test.each(["sync", "async", "exit"])(
    "no checkpoint of a step is stored whose events the log has refused (durability %s)",
    async (durability) => {
      const threadId = await api.aThread();
      const run = await api.aRun(threadId, {
        assistant_id: "ten-steps",
        input: {},
        stream_mode: ["updates"],
        stream_resumable: true,
        durability,
      });
      await api.untilRunIs(threadId, run.run_id, "error");
      const [logged] = await query<{ updates: number }>(
        server,
        "select count(*)::int as updates from threadloom.run_events where run_id = $1 and event = 'updates'",
        [run.run_id],
      );
      const [newest] = await query<{ step: number | null }>(
        server,
        "select max((metadata->>'step')::int) as step from threadloom.checkpoints where thread_id = $1",
        [threadId],
      );
      expect(newest?.step ?? -1).toBeLessThanOrEqual(logged?.updates ?? -1);
      if (durability === "sync") expect(logged?.updates).toBe(3);
      const [attempts] = await query(
        server,
        "select attempt, lost_attempts from threadloom.runs where run_id = $1",
        [run.run_id],
      );
      expect(attempts).toEqual({ attempt: 1, lost_attempts: 0 });
    },
  );
});
