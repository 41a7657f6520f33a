import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { apiOf, saying } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { query } from "../../helpers/query.ts";

/*
 * After a crash, a step whose checkpoint is stored is not executed again. Its events must be in the log before, or they are lost. The log
 * is slow here, and each checkpoint records the log's content.
 */
const WATCH = `
create table public.noted (run_id uuid, step int, updates int, messages int);
create function public.note() returns trigger language plpgsql as $$
begin
  insert into public.noted
    select new.run_id, (new.metadata->>'step')::int, count(*) filter (where event = 'updates'),
      count(*) filter (where event = 'messages')
    from threadloom.run_events e where e.thread_id = new.thread_id and e.run_id = new.run_id;
  return null;
end $$;
create trigger note after insert on threadloom.checkpoints for each row execute function public.note();
create function public.dawdle() returns trigger language plpgsql as $$
begin
  perform pg_sleep(0.05);
  return null;
end $$;
create trigger dawdle before insert on threadloom.run_events for each statement execute function public.dawdle()`;

interface Noted {
  step: number;
  updates: number;
  messages: number;
}

describe.each([
  ["in the server's own process", 0],
  ["in a graph process", 1],
])("%s", (_, graphProcesses) => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer({ graphProcesses });
    await query(server, WATCH);
  });
  afterAll(() => server.close());

  const executed = async (body: object): Promise<Noted[]> => {
    const api = apiOf(server);
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, body);
    await api.join(threadId, run.run_id);
    return await query<Noted>(
      server,
      "select step, updates, messages from public.noted where run_id = $1 order by step",
      [run.run_id],
    );
  };

  test.each(["async", "sync"])(
    "a step's events are in the log before its checkpoint is stored (durability %s)",
    async (durability) => {
      const body = { assistant_id: "ten-steps", input: {}, stream_mode: ["updates"], durability };
      const noted = await executed({ ...body, stream_resumable: true });
      expect(noted.map(({ step }) => step)).toEqual([-1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
      for (const { step, updates } of noted) expect(updates).toBeGreaterThanOrEqual(Math.max(step, 0));
    },
  );

  test("the tokens of a model are in the log before the checkpoint", async () => {
    const body = { assistant_id: "tokens", input: { ...saying("hello"), tokens: 300 } };
    const noted = await executed({ ...body, stream_mode: ["messages-tuple"], stream_resumable: true });
    expect(noted.at(-1)).toMatchObject({ step: 1 });
    expect(noted.at(-1)?.messages).toBeGreaterThanOrEqual(300);
  });
});
