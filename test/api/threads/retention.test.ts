import { randomUUID } from "node:crypto";
import { rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterAll, afterEach, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import pg from "pg";
import { GraphLoadError, readGraphConfig } from "../../../src/graphs/project/langgraph-json.ts";
import { createRetention, startRetention } from "../../../src/api/threads/retention.ts";
import { authorize } from "../../helpers/access.ts";
import { startTestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { FIXTURE_GRAPHS } from "../../helpers/parts.ts";
import { openThreadsRoom, type State, type Thread, type ThreadsRoom } from "./threads-room.ts";

const logger = pino({ level: "silent" });
let room: ThreadsRoom;
beforeAll(async () => {
  room = await openThreadsRoom();
});
afterAll(async () => await room.close());
afterEach(async () => {
  await room.database.query("delete from threadloom.threads");
  for (const table of ["checkpoints", "checkpoint_writes", "checkpoint_contents"]) {
    await room.database.query(`delete from threadloom.${table}`);
  }
});

const retention = () =>
  createRetention({
    authorize,
    database: room.database,
    checkpoints: room.checkpoints,
    onThreadsDeleted: (ids) => room.deleted.push(...ids),
    logger,
  });

/** Rows of every table except the names of channels, which are few and shared by all threads. */
const countRows = async (): Promise<Record<string, number>> => {
  const tables = await room.database.query<{ name: string }>(
    `select table_name as name from information_schema.tables
     where table_schema = 'threadloom' and table_type = 'BASE TABLE'
       and table_name not in ('migrations', 'checkpoint_names') order by table_name`,
  );
  const counts: Record<string, number> = {};
  for (const { name } of tables) {
    const found = await room.database.query<{ rows: number }>(
      `select count(*)::integer as rows from threadloom."${name}"`,
    );
    counts[name] = found.reduce((sum, { rows }) => sum + rows, 0);
  }
  return counts;
};

const letPass = async (minutes: number): Promise<void> => {
  await room.database.query(
    "update threadloom.threads set expires_at = expires_at - $1::float8 * interval '1 minute'",
    [minutes],
  );
};

/** A conversation with values stored outside the checkpoint, a run and its events. */
const aConversation = async (ttl: object | undefined, turns = 3): Promise<string> => {
  const { thread_id: id } = await room.aThread(ttl === undefined ? {} : { ttl });
  for (let turn = 0; turn < turns; turn += 1) {
    const text = `${turn} ${"tell me more ".repeat(300)}`;
    await room.run("counter", id, { messages: [{ role: "user", content: text }], count: turn });
  }
  const runId = randomUUID();
  await room.database.query(
    `insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, kwargs, multitask_strategy)
     values ($1, $2, $1, 'counter', 'success', '{}', 'enqueue')`,
    [runId, id],
  );
  await room.database.query(
    "insert into threadloom.run_events (thread_id, run_id, seq, event, data) values ($2, $1, 0, 'values', '{}')",
    [runId, id],
  );
  return id;
};

const stateOf = async (id: string): Promise<State> =>
  (await room.request<State>("GET", `/threads/${id}/state`)).body;
const historyOf = async (id: string): Promise<State[]> =>
  (await room.request<State[]>("POST", `/threads/${id}/history`, { limit: 1000 })).body;
const statusOf = async (id: string): Promise<number> => (await room.request("GET", `/threads/${id}`)).status;

describe("a retention sweep", () => {
  it("removes a thread with strategy delete from every table, and leaves the others", async () => {
    const kept = await aConversation(undefined);
    const before = await countRows();
    const gone = await aConversation({ ttl: 10 });
    const states = await stateOf(kept);
    expect((await countRows()).checkpoints).toBeGreaterThan(before.checkpoints!);

    expect(await retention().sweep(100)).toEqual({ deleted: 0, pruned: 0, failed: 0 });
    await letPass(11);
    expect(await retention().sweep(100)).toEqual({ deleted: 1, pruned: 0, failed: 0 });

    expect(await countRows()).toEqual(before);
    expect(room.deleted).toContain(gone);
    expect(await statusOf(gone)).toBe(404);
    expect(await stateOf(kept)).toEqual(states);
  });

  it("keeps the newest state of a thread with strategy keep_latest, and frees values of older ones", async () => {
    const one = await aConversation({ ttl: 10, strategy: "keep_latest" }, 1);
    const rowsOfOne = await countRows();
    const id = await aConversation({ ttl: 10, strategy: "keep_latest" }, 6);
    // Replaces all long messages by a short one, so the values shared by older states become unused.
    const remove = (await stateOf(id)).values.messages as { id: string }[];
    await room.request("POST", `/threads/${id}/state`, {
      values: {
        messages: remove.map((message) => ({ role: "remove", type: "remove", id: message.id, content: "" })),
      },
    });
    await room.request("POST", `/threads/${id}/state`, {
      values: { messages: [{ role: "user", content: "hi" }] },
    });
    const [stateOfOne, state] = [await stateOf(one), await stateOf(id)];
    expect(state.values.messages).toHaveLength(1);
    expect((await historyOf(id)).length).toBeGreaterThan(6);

    await letPass(11);
    expect(await retention().sweep(100)).toEqual({ deleted: 0, pruned: 2, failed: 0 });

    const newest = { ...state, parent_checkpoint: null };
    expect(await stateOf(id)).toEqual(newest);
    expect(await historyOf(id)).toEqual([newest]);
    expect(await stateOf(one)).toEqual({ ...stateOfOne, parent_checkpoint: null });
    const rows = await countRows();
    expect(rows).toMatchObject({ threads: 2, runs: 2, run_events: 2, checkpoints: 2, checkpoint_writes: 0 });
    expect(rowsOfOne.checkpoint_contents).toBeGreaterThan(0);
    // In the second thread no long text remains: only the names of its channels, and its short messages.
    const [left] = await room.database.query<{ bytes: number }>(
      "select max(octet_length(content)) as bytes from threadloom.checkpoint_contents where thread_id = $1",
      [id],
    );
    expect(left?.bytes ?? 0).toBeLessThan(1_000);
    const dangling = await room.database.query(
      `select 1 from threadloom.checkpoint_contents k where not exists (
         select 1 from threadloom.checkpoints c where c.thread_id = k.thread_id and k.hash = any(c.contents))`,
    );
    expect(dangling).toEqual([]);
  });

  it("lets a pruned conversation continue, and prunes it again after another idle time", async () => {
    const id = await aConversation({ ttl: 10, strategy: "keep_latest" });
    await letPass(11);
    await retention().sweep(100);
    expect((await room.request<Thread>("GET", `/threads/${id}?include=ttl`)).body.ttl).toEqual({
      strategy: "keep_latest",
      ttl_minutes: 10,
    });
    // Nothing to prune until the thread changes.
    expect(await retention().sweep(100)).toEqual({ deleted: 0, pruned: 0, failed: 0 });

    await room.run("counter", id, { messages: [{ role: "user", content: "And then?" }], count: 1 });
    await room.request("POST", `/threads/${id}/state`, { values: { count: 1 } });
    const { values } = await stateOf(id);
    expect(values.messages).toHaveLength(4);
    await letPass(11);
    expect(await retention().sweep(100)).toEqual({ deleted: 0, pruned: 1, failed: 0 });
    expect((await stateOf(id)).values).toEqual(values);
    expect(await historyOf(id)).toHaveLength(1);
  });

  it("keeps the state that an interrupted thread needs to continue", async () => {
    const { thread_id: id } = await room.aThread({ ttl: { ttl: 10, strategy: "keep_latest" } });
    await room.run("nested-approval", id, { text: "draft" });
    const { tasks, values } = await stateOf(id);
    await letPass(11);
    await retention().sweep(100);
    const pruned = await stateOf(id);
    expect(pruned.tasks[0]!.interrupts).toEqual(tasks[0]!.interrupts);
    expect(pruned.values).toEqual(values);
  });

  it("skips threads with a running run and locked threads", async () => {
    const ids = [
      await aConversation({ ttl: 1 }, 1),
      await aConversation({ ttl: 1, strategy: "keep_latest" }, 1),
    ];
    const [locked, free] = [await aConversation({ ttl: 1 }, 1), await aConversation({ ttl: 1 }, 1)];
    await letPass(2);
    await room.database.query(
      "update threadloom.threads set unfinished_runs = 1, status = 'busy' where thread_id = any($1)",
      [ids],
    );
    await room.database.transaction(async (transaction) => {
      await transaction.query("update threadloom.threads set updated_at = now() where thread_id = $1", [
        locked,
      ]);
      expect(await retention().sweep(100)).toEqual({ deleted: 1, pruned: 0, failed: 0 });
    });
    expect(await statusOf(free)).toBe(404);
    for (const id of [...ids, locked]) expect(await statusOf(id)).toBe(200);
    expect(await retention().sweep(100)).toEqual({ deleted: 1, pruned: 0, failed: 0 });
    expect(await statusOf(locked)).toBe(404);
  });

  it("removes each thread once when several processes sweep at the same time", async () => {
    await room.database.query(
      `insert into threadloom.threads (thread_id, ttl_strategy, ttl_minutes, expires_at)
       select gen_random_uuid(), case when i % 3 = 0 then 'keep_latest' else 'delete' end, 1, now() - interval '1 second'
       from generate_series(1, 300) as i`,
    );
    const swept = await Promise.all([1, 2, 3, 4].map(() => retention().sweep(1_000)));
    const sum = (what: "deleted" | "pruned" | "failed") => swept.reduce((total, one) => total + one[what], 0);
    expect([sum("deleted"), sum("pruned"), sum("failed")]).toEqual([200, 100, 0]);
    expect((await countRows()).threads).toBe(100);
  });

  it("handles no more threads than its limit", async () => {
    for (let count = 0; count < 3; count += 1) await aConversation({ ttl: 1 }, 1);
    await letPass(2);
    expect(await retention().sweep(2)).toEqual({ deleted: 2, pruned: 0, failed: 0 });
    expect((await countRows()).threads).toBe(1);
  });

  const manyExpired = (threads: number) =>
    room.database.query(
      `insert into threadloom.threads (thread_id, ttl_strategy, ttl_minutes, expires_at)
       select gen_random_uuid(), 'delete', 1, now() - interval '1 hour' from generate_series(1, $1)`,
      [threads],
    );

  it("continues in batches until nothing expired is left", async () => {
    await manyExpired(250);
    const batches: number[] = [];
    const quick = createRetention({
      authorize,
      database: room.database,
      checkpoints: room.checkpoints,
      onThreadsDeleted: (ids) => batches.push(ids.length),
      logger,
    });
    expect(await quick.sweep()).toEqual({ deleted: 250, pruned: 0, failed: 0 });
    expect(batches).toEqual([100, 100, 50]);
  });

  it("finds a batch by the index, without sorting, if many have expired", async () => {
    await manyExpired(5_000);
    await room.database.query("analyze threadloom.threads");
    const plans: string[] = [];
    const rollBack = new Error("rolled back");
    const explaining: typeof room.database = {
      ...room.database,
      transaction: (work) =>
        room.database.transaction((transaction) =>
          work({
            ...transaction,
            async query<Row>(text: string, values: unknown[] = []): Promise<Row[]> {
              await transaction.query("set local plan_cache_mode = force_generic_plan");
              const rows = await transaction.query<{ "QUERY PLAN": string }>(`explain ${text}`, values);
              plans.push(rows.map((row) => row["QUERY PLAN"]).join("\n"));
              throw rollBack;
            },
          }),
        ),
    };
    const { checkpoints } = room;
    const sweeping = createRetention({ authorize, database: explaining, checkpoints, logger }).sweep();
    await expect(sweeping).rejects.toBe(rollBack);
    expect(plans[0]).toContain("threads_by_expiry");
    expect(plans[0]).not.toContain("Sort");
  });

  it("continues with the others when one thread can't be pruned", async () => {
    const stuck = await aConversation({ ttl: 2, strategy: "keep_latest" }, 1);
    const fine = await aConversation({ ttl: 3, strategy: "keep_latest" }, 1);
    await letPass(4);
    const failing = createRetention({
      authorize,
      database: room.database,
      checkpoints: {
        deleteThread: (id, queryable) => room.checkpoints.deleteThread(id, queryable),
        keepLatest: (id, queryable) =>
          id === stuck ? Promise.reject(new Error("no")) : room.checkpoints.keepLatest(id, queryable),
      },
      logger,
    });
    expect(await failing.sweep(100)).toEqual({ deleted: 0, pruned: 1, failed: 1 });
    expect(await historyOf(fine)).toHaveLength(1);
    expect((await historyOf(stuck)).length).toBeGreaterThan(1);
  });

  it("runs at its interval until it is closed", async () => {
    const id = await aConversation({ ttl: 1 }, 1);
    await letPass(2);
    const sweeper = startRetention({
      authorize,
      database: room.database,
      checkpoints: room.checkpoints,
      expiry: { defaultTtl: undefined, sweepIntervalMinutes: 0.001, threadsPerSweep: 10 },
      logger,
    });
    await eventually("the thread is gone", async () => (await statusOf(id)) === 404);
    await sweeper.close();
  });
});

describe("the time to live of a thread", () => {
  const expiresIn = async (id: string): Promise<number> => {
    const [row] = await room.database.query<{ minutes: number }>(
      "select extract(epoch from expires_at - now())::float8 / 60 as minutes from threadloom.threads where thread_id = $1",
      [id],
    );
    return row!.minutes;
  };

  it("restarts with an update of the state and with a change of the record", async () => {
    const id = await aConversation({ ttl: 10 }, 1);
    await letPass(5);
    expect(await expiresIn(id)).toBeLessThan(6);
    await room.request("POST", `/threads/${id}/state`, { values: { count: 1 } });
    expect(await expiresIn(id)).toBeGreaterThan(9);
    await letPass(5);
    await room.request("PATCH", `/threads/${id}`, { metadata: { title: "renamed" } });
    expect(await expiresIn(id)).toBeGreaterThan(9);
    await room.request("PATCH", `/threads/${id}`, { ttl: 20 });
    expect(await expiresIn(id)).toBeGreaterThan(19);
  });

  it("does not start for a thread without one", async () => {
    const id = await aConversation(undefined, 1);
    await room.request("POST", `/threads/${id}/state`, { values: { count: 1 } });
    await room.request("PATCH", `/threads/${id}`, { metadata: { title: "renamed" } });
    const [row] = await room.database.query(
      "select expires_at from threadloom.threads where thread_id = $1",
      [id],
    );
    expect(row).toEqual({ expires_at: null });
  });
});

/** The fixture graphs with more settings. */
const aConfig = async (settings: object): Promise<string> => {
  const path = join(tmpdir(), `langgraph-${randomUUID()}.json`);
  onTestFinished(() => rm(path));
  const counter = FIXTURE_GRAPHS.replace("langgraph.json", "counter.ts:graph");
  await writeFile(path, JSON.stringify({ graphs: { counter }, ...settings }));
  return path;
};

describe("langgraph.json", () => {
  it("sets the time to live of threads that clients and runs create, and the end of a run restarts it", async () => {
    const server = await startTestServer({
      graphConfigFile: await aConfig({
        checkpointer: { ttl: { strategy: "keep_latest", default_ttl: 0.02, sweep_interval_minutes: 0.001 } },
        store: { ttl: { default_ttl: 5, refresh_on_read: false } },
      }),
    });
    try {
      const post = async (path: string, body: object) => await server.client.post(path).send(body);
      const ttlOf = async (id: string) =>
        ((await server.client.get(`/threads/${id}?include=ttl`)).body as Thread).ttl;
      const own = ((await post("/threads", { ttl: { ttl: 60, strategy: "delete" } })).body as Thread)
        .thread_id;
      expect(await ttlOf(own)).toMatchObject({ strategy: "delete", ttl_minutes: 60 });
      const created = ((await post("/threads", {})).body as Thread).thread_id;
      expect(await ttlOf(created)).toMatchObject({ strategy: "keep_latest", ttl_minutes: 0.02 });

      const input = { messages: [{ role: "user", content: "hi" }] };
      const ifNotExists = randomUUID();
      await post(`/threads/${ifNotExists}/runs/wait`, {
        assistant_id: "counter",
        if_not_exists: "create",
        input,
      });
      expect(await ttlOf(ifNotExists)).toMatchObject({ strategy: "keep_latest", ttl_minutes: 0.02 });
      const kept = (await post("/runs", { assistant_id: "counter", on_completion: "keep", input })).body as {
        thread_id: string;
      };
      expect(await ttlOf(kept.thread_id)).toMatchObject({ strategy: "keep_latest", ttl_minutes: 0.02 });

      const history = async () =>
        ((await post(`/threads/${ifNotExists}/history`, { limit: 100 })).body as State[]).length;
      await eventually("the thread is pruned", async () => (await history()) === 1);
      // The end of the next run restarts the time.
      await post(`/threads/${ifNotExists}/runs/wait`, { assistant_id: "counter", input });
      expect((await ttlOf(ifNotExists))?.ttl_minutes).toBe(0.02);
      await eventually("it is pruned again", async () => (await history()) === 1);
      const state = (await server.client.get(`/threads/${ifNotExists}/state`)).body as State;
      expect(state.values.messages).toHaveLength(2);

      const put = await server.client
        .put("/store/items")
        .send({ namespace: ["a"], key: "b", value: { c: 1 } });
      expect(put.status).toBe(204);
      const client = new pg.Client({ connectionString: server.connectionString });
      await client.connect();
      const { rows } = await client.query("select ttl_minutes from threadloom.store_items");
      await client.end();
      expect(rows).toEqual([{ ttl_minutes: 5 }]);
    } finally {
      await server.close();
    }
  });

  it("is read as the hosted service documents it", async () => {
    const config = await readGraphConfig(
      await aConfig({
        checkpointer: {
          ttl: { strategy: "delete", sweep_interval_minutes: 60, default_ttl: 43_200, sweep_limit: 500 },
          serde: { allowed_json_modules: true },
        },
        store: { ttl: { refresh_on_read: false, sweep_interval_minutes: 120, default_ttl: 10_080 } },
      }),
    );
    expect(config.threadExpiry).toEqual({
      defaultTtl: { strategy: "delete", minutes: 43_200 },
      sweepIntervalMinutes: 60,
      threadsPerSweep: 500,
    });
    expect(config.storeExpiry).toEqual({
      defaultMinutes: 10_080,
      refreshOnRead: false,
      sweepIntervalMinutes: 120,
    });
  });

  it.each([
    [{ checkpointer: { ttl: { strategy: "forget", default_ttl: 1 } } }, "checkpointer.ttl.strategy"],
    [{ checkpointer: { ttl: { default_ttl: -1 } } }, "checkpointer.ttl.default_ttl"],
    [{ store: { ttl: { refresh_on_read: "yes" } } }, "store.ttl.refresh_on_read"],
  ])("causes an error that names the invalid field: %j", async (settings, field) => {
    const error: unknown = await readGraphConfig(await aConfig(settings)).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(GraphLoadError);
    expect((error as Error).message).toContain(field);
  });
});
