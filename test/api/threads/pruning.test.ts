import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCheckpointStorage } from "../../../src/state/checkpoints/storage.ts";
import { eventually } from "../../helpers/conditions.ts";
import { openThreadsRoom, type State, type ThreadsRoom } from "./threads-room.ts";
import { collected } from "../../helpers/collected.ts";
import { isSomeWaiting } from "../../helpers/locks.ts";

/** Pruning, and concurrent changes of the same thread. */

let room: ThreadsRoom;
beforeAll(async () => {
  room = await openThreadsRoom();
});
afterAll(() => room.close());

const GATE = Symbol.for("threadloom.test.gate");
/** Long enough to be stored outside the checkpoint, once for all checkpoints that refer to it. */
const LONG = "long ".repeat(1_000);

const prune = (id: string) =>
  room.request<{ pruned_count: number }>("POST", "/threads/prune", {
    thread_ids: [id],
    strategy: "keep_latest",
  });
const update = (id: string, body: Record<string, unknown>) =>
  room.request<{ detail?: string; checkpoint_id: string }>("POST", `/threads/${id}/state`, {
    as_node: "write",
    ...body,
  });
const historyOf = async (id: string) =>
  (await room.request<State[]>("GET", `/threads/${id}/history?limit=1000`)).body;

/** The state read by a process with an empty cache. */
const readElsewhere = async (id: string): Promise<Record<string, unknown>> => {
  const head = await createCheckpointStorage({
    database: room.database,
    logger: pino({ level: "silent" }),
  }).readHead(id);
  return Object.fromEntries([...(head?.values ?? [])].map(([name, text]) => [name, JSON.parse(text)]));
};

/** A thread with long notes; `gated` lets a test act between the reading of a state and the writing. */
const aThreadWithNotes = async (): Promise<string> => {
  const { thread_id: id } = await room.aThread();
  await room.run("gated", id, { text: "one", notes: LONG });
  return id;
};

/** Does the work once, while the next update of a state is between reading and writing. */
const meanwhile = (work: () => Promise<unknown>): void => {
  const holder = globalThis as unknown as Record<symbol, unknown>;
  holder[GATE] = async () => {
    delete holder[GATE];
    await work();
  };
};

describe("an update of a state that was read before a prune", () => {
  it("is computed again on the remaining state, and refers to nothing that was freed", async () => {
    const id = await aThreadWithNotes();
    meanwhile(async () => {
      expect((await update(id, { values: { notes: "short" } })).status).toBe(200);
      expect((await prune(id)).body.pruned_count).toBe(1);
    });
    expect((await update(id, { values: { text: "two" } })).status).toBe(200);
    expect(await readElsewhere(id)).toMatchObject({ text: "two", notes: "short" });
    expect(await historyOf(id)).toHaveLength(2);
  });

  it("answers 404 if its start checkpoint is gone", async () => {
    const id = await aThreadWithNotes();
    const old = (await historyOf(id))[0]?.checkpoint?.checkpoint_id;
    await update(id, { values: { notes: "short" } });
    meanwhile(() => prune(id));
    const { status, body } = await update(id, { values: { text: "two" }, checkpoint_id: old });
    expect([status, body.detail]).toEqual([404, `Checkpoint '${old}' not found.`]);
    expect(await readElsewhere(id)).toMatchObject({ text: "one", notes: "short" });
    expect(await historyOf(id)).toHaveLength(1);
  });
});

it("an update of a state builds on another one that was written after it read", async () => {
  const id = await aThreadWithNotes();
  meanwhile(() => update(id, { values: { notes: "by the other" } }));
  expect((await update(id, { values: { text: "two" } })).status).toBe(200);
  expect(await readElsewhere(id)).toMatchObject({ text: "two", notes: "by the other" });
});

it("many concurrent updates of one state are all kept", async () => {
  const { thread_id: id } = await room.aThread({ metadata: { graph_id: "counter" } });
  const statuses = await Promise.all(
    Array.from(
      { length: 12 },
      async () => (await update(id, { values: { count: 1 }, as_node: "increment" })).status,
    ),
  );
  expect(statuses).toEqual(statuses.map(() => 200));
  expect(await readElsewhere(id)).toMatchObject({ count: 12 });
});

it("a prune skips a thread on which a run is being created", async () => {
  const id = await aThreadWithNotes();
  await update(id, { values: { notes: "short" } });
  const before = await historyOf(id);
  let pruned: ReturnType<typeof prune> | undefined;
  await room.database.transaction(async (creation) => {
    await creation.query("update threadloom.threads set unfinished_runs = 1 where thread_id = $1", [id]);
    pruned = prune(id);
    await eventually("the prune waits for the thread", () =>
      isSomeWaiting((text) => room.database.query(text)),
    );
  });
  expect((await pruned)?.body).toEqual({ pruned_count: 0 });
  expect(await historyOf(id)).toEqual(before);
});

it("an update that the graph refuses after it has written stores nothing", async () => {
  const { thread_id: id } = await room.aThread();
  await room.run("throwing", id, { count: 1 });
  const writes = async () =>
    await room.database.query(
      "select checkpoint_id, writes from threadloom.checkpoint_writes where thread_id = $1",
      [id],
    );
  const before = await writes();
  expect((await update(id, { values: { count: "many" }, as_node: "tick" })).status).toBe(422);
  expect(await writes()).toEqual(before);
});

it("a prune between the statements of a history does not affect its reader", async () => {
  const id = await aThreadWithNotes();
  await update(id, { values: { notes: "short" } });
  let statements = 0;
  const { readHistory } = createCheckpointStorage({
    logger: pino({ level: "silent" }),
    database: {
      ...room.database,
      async query<Row>(text: string, values?: unknown[]) {
        const rows = await room.database.query<Row>(text, values);
        statements += 1;
        if (statements === 1) await prune(id);
        return rows;
      },
    },
  });
  const history = await collected(readHistory(id, "", { limit: 10 }));
  expect(history.map(({ values }) => values.get("notes"))).toEqual(['"short"']);
  expect(statements).toBeGreaterThan(1);
});

it("a prune of a thread without delta channels takes one statement, besides those that free values", async () => {
  const id = await aThreadWithNotes();
  await update(id, { values: { notes: "short" } });
  const statements: string[] = [];
  await room.checkpoints.keepLatest(id, {
    ...room.database,
    query: (text, values) => {
      statements.push(text);
      return room.database.query(text, values);
    },
  });
  expect(statements.filter((text) => !text.includes("checkpoint_contents"))).toHaveLength(1);
  expect(statements).toHaveLength(2);
  expect(await historyOf(id)).toHaveLength(1);
});
