import { randomUUID } from "node:crypto";
import { fileURLToPath } from "node:url";
import { Command, MemorySaver } from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { PostgresSaver } from "@langchain/langgraph-checkpoint-postgres";
import type { Pool } from "pg";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createRetention } from "../../../src/api/threads/retention.ts";
import { importThreads } from "../../../src/cli/import/importer.ts";
import { Source } from "../../../src/cli/import/source.ts";
import { openDatabase } from "../../../src/platform/database/database.ts";
import { createCheckpointStorage } from "../../../src/state/checkpoints/storage.ts";
import { isAtGate, openGate } from "../../fixtures/gates.ts";
import { authorize } from "../../helpers/access.ts";
import { apiOf, type Api, type StateRecord } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { TEST_KEYS } from "../../helpers/encryption.ts";
import { query } from "../../helpers/query.ts";
import { compiled } from "./graphs.ts";

/**
 * Each way in which a checkpoint comes to be, before each way in which checkpoints go. LangGraph with its saver in memory, which loses
 * nothing, says what the state is then, and after one more run.
 */

const GRAPHS = fileURLToPath(new URL("./langgraph.json", import.meta.url));
type GraphId = keyof typeof compiled;

interface RunOptions {
  input?: unknown;
  resume?: unknown;
  durability?: "exit" | "sync" | "async";
  before?: string;
  at?: string;
}
interface Update {
  values: unknown;
  node?: string;
  at?: string;
}
interface Point {
  id: string;
  next: readonly string[];
}
type Values = Record<string, unknown> & { messages?: { id?: string; content: unknown }[] };
type Shown = Record<string, unknown>;

/** What a user does, with a server or with LangGraph alone. */
interface Subject {
  graphId: GraphId;
  run(options: RunOptions): Promise<void>;
  /** Is stopped in its node `ask`. */
  cancelledRun(input: unknown): Promise<void>;
  /** Loses its server meanwhile. */
  lostRun(input: unknown): Promise<void>;
  update(update: Update): Promise<void>;
  /** On an empty thread. */
  supersteps(updates: { values: unknown; as_node: string }[]): Promise<void>;
  /** Newest first. */
  history(): Promise<Point[]>;
  state(): Promise<Shown>;
  assign(graphId: GraphId): Promise<void>;
  changeMetadata(): Promise<void>;
}

const shown = (values: Values, next: readonly string[], questions: unknown[]): Shown => ({
  ...values,
  messages: (values.messages ?? []).map(({ id, content }) => [id, content]),
  next: [...next].sort(),
  questions,
});

const ofLangGraph = (checkpointer: BaseCheckpointSaver, graph: GraphId): Subject & { threadId: string } => {
  const threadId = randomUUID();
  const config = (at?: string) => ({
    configurable: {
      thread_id: threadId,
      checkpoint_ns: "",
      ...(at === undefined ? {} : { checkpoint_id: at }),
    },
  });
  const subject = {
    threadId,
    graphId: graph,
    get graph() {
      return compiled[subject.graphId](checkpointer) as ReturnType<typeof compiled.frequent>;
    },
    async run({ input, resume, durability, before, at }: RunOptions) {
      const given = (resume === undefined ? input : new Command({ resume })) as never;
      await subject.graph
        .invoke(given, {
          ...config(at),
          durability,
          ...(before === undefined ? {} : { interruptBefore: [before as never] }),
        })
        .catch((error: Error) => expect(error.message).toBe("This node fails."));
    },
    async cancelledRun(input: unknown) {
      const stop = new AbortController();
      const run = subject.graph.invoke(input as never, { ...config(), signal: stop.signal });
      await eventually(
        "the run waits, and its steps are stored",
        async () => isAtGate(threadId) && (await subject.history())[0]?.next.includes("ask"),
      );
      stop.abort();
      await run.catch(() => undefined);
    },
    async lostRun(input: unknown) {
      await subject.cancelledRun(input);
      const again = subject.graph.invoke(null, config());
      await eventually("the run waits", () => isAtGate(threadId));
      openGate(threadId);
      await again;
    },
    async update({ values, node, at }: Update) {
      const place = { configurable: { ...config(at).configurable, checkpoint_ns: "" } };
      await subject.graph.updateState(place, values as never, node as never);
    },
    async supersteps(updates: { values: unknown; as_node: string }[]) {
      await subject.graph.bulkUpdateState(
        config(),
        updates.map(({ values, as_node }) => ({
          updates: [{ values: values as never, asNode: as_node as never }],
        })),
      );
    },
    async history() {
      const points: Point[] = [];
      for await (const { config: at, next } of subject.graph.getStateHistory(config()))
        points.push({ id: at.configurable?.checkpoint_id as string, next });
      return points;
    },
    async state() {
      const state = await subject.graph.getState(config());
      const questions = state.tasks.flatMap((task) => task.interrupts.map(({ value }) => value as unknown));
      return JSON.parse(JSON.stringify(shown(state.values as never, state.next, questions))) as Shown;
    },
    assign(graphId: GraphId) {
      subject.graphId = graphId;
      return Promise.resolve();
    },
    changeMetadata: () => Promise.resolve(),
  };
  return subject;
};

const shownState = ({ values, next, tasks }: StateRecord): Shown =>
  shown(
    values as Values,
    next,
    tasks.flatMap(({ interrupts }) => interrupts.map(({ value }) => value)),
  );

const ofServer = (server: TestServer, threadId: string, graph: GraphId): Subject => {
  const api = apiOf(server);
  const subject: Subject = {
    graphId: graph,
    async run({ input, resume, durability, before, at }) {
      await api.aFinishedRun(threadId, {
        assistant_id: subject.graphId,
        ...(resume === undefined ? { input } : { command: { resume } }),
        ...(durability && { durability }),
        ...(before && { interrupt_before: [before] }),
        ...(at && { checkpoint_id: at }),
      });
    },
    async cancelledRun(input) {
      const { run_id } = await api.aRun(threadId, { assistant_id: subject.graphId, input });
      await eventually("the run waits", () => isAtGate(threadId));
      expect((await api.cancel(threadId, run_id)).status).toBeLessThan(300);
    },
    async lostRun(input) {
      const other = await startTestServer({
        connectionString: server.connectionString,
        ...settings(GRAPHS),
        shutdownGraceSeconds: 0,
      });
      const { run_id } = await apiOf(other).aRun(threadId, { assistant_id: subject.graphId, input });
      await eventually("the run waits", () => isAtGate(threadId));
      await other.close();
      await eventually("the run waits again", () => isAtGate(threadId));
      openGate(threadId);
      await api.join(threadId, run_id);
    },
    async update({ values, node, at }) {
      const body = { values, ...(node && { as_node: node }), ...(at && { checkpoint_id: at }) };
      expect((await api.post(`/threads/${threadId}/state`, body)).status).toBe(200);
    },
    async supersteps(updates) {
      await api.remove(`/threads/${threadId}`);
      const body = {
        thread_id: threadId,
        metadata: { graph_id: subject.graphId },
        supersteps: updates.map((update) => ({ updates: [update] })),
      };
      expect((await api.post("/threads", body)).body).toMatchObject({ thread_id: threadId });
    },
    async history() {
      const states = await api.history(threadId);
      return states.map(({ checkpoint, next }) => ({ id: checkpoint?.checkpoint_id ?? "", next }));
    },
    state: async () => shownState(await api.state(threadId)),
    async assign(graphId) {
      subject.graphId = graphId;
      expect((await api.patch(`/threads/${threadId}`, { metadata: { graph_id: graphId } })).status).toBe(200);
    },
    async changeMetadata() {
      expect((await api.patch(`/threads/${threadId}/state`, { metadata: { note: "x" } })).status).toBe(200);
    },
  };
  return subject;
};

const asking = (turn: number, cmd = "go") => ({
  messages: [{ role: "user", content: `turn ${turn}`, id: `user ${turn}` }],
  cmd,
});
const turns = async (subject: Subject, options: Partial<RunOptions> = {}): Promise<void> => {
  for (const turn of [1, 2]) await subject.run({ input: asking(turn), ...options });
};
const pointBefore = async (subject: Subject, node: string): Promise<string> => {
  const points = (await subject.history()).filter(({ next }) => next.includes(node));
  return points[1]?.id ?? "";
};
const byHand = { values: { items: "by hand" }, node: "last" };

/** `next`: what comes after; otherwise another turn. */
interface Way {
  does(subject: Subject): Promise<unknown>;
  next?: RunOptions;
  /** Also without snapshots, encrypted, and imported from the official saver. */
  everywhere?: true;
}

const WAYS: Record<string, Way> = {
  "a run": { does: turns },
  "a run that stores each step before the next": { does: (s) => turns(s, { durability: "sync" }) },
  "a run that stores only its end": { does: (s) => turns(s, { durability: "exit" }) },
  "a run that stores only its end, after others": {
    everywhere: true,
    does: async (s) => {
      await turns(s);
      await s.run({ input: asking(4), durability: "exit" });
    },
  },
  "an update": {
    does: async (s) => {
      await turns(s);
      await s.update(byHand);
    },
  },
  "several updates": {
    does: async (s) => {
      await turns(s);
      for (let i = 0; i < 5; i += 1) await s.update(byHand);
    },
  },
  "an update of another value": {
    does: async (s) => {
      await turns(s);
      await s.update({ values: { told: "by hand" }, node: "last" });
    },
  },
  "an update without values": {
    does: async (s) => {
      await turns(s);
      await s.update({ values: null });
    },
  },
  "an update as input": {
    does: async (s) => {
      await turns(s);
      await s.update({ values: asking(4), node: "__input__" });
    },
    next: { input: null },
  },
  "an update that ends the thread": {
    does: async (s) => {
      await s.run({ input: asking(1), before: "last" });
      await s.update({ values: null, node: "__end__" });
    },
  },
  "an update at an earlier checkpoint": {
    does: async (s) => {
      await turns(s);
      await s.update({ values: { each: "by hand" }, node: "last", at: await pointBefore(s, "last") });
    },
    next: { input: null },
  },
  "a run after an update": {
    everywhere: true,
    does: async (s) => {
      await turns(s);
      await s.update(byHand);
      await s.run({ input: asking(4) });
    },
  },
  "a run at an earlier checkpoint": {
    does: async (s) => {
      await turns(s);
      await s.run({ input: null, at: await pointBefore(s, "last") });
    },
  },
  "a copied checkpoint": {
    does: async (s) => {
      await turns(s);
      await s.update({ values: null, node: "__copy__" });
    },
  },
  "a copied earlier checkpoint": {
    everywhere: true,
    does: async (s) => {
      await turns(s);
      await s.update({ values: null, node: "__copy__", at: await pointBefore(s, "one") });
    },
    next: { input: null },
  },
  "a copied checkpoint with an update": {
    does: async (s) => {
      await turns(s);
      await s.update({
        values: [[{ items: "by hand" }, "one"]],
        node: "__copy__",
        at: await pointBefore(s, "one"),
      });
    },
    next: { input: null },
  },
  "supersteps of a new thread": {
    everywhere: true,
    does: (s) =>
      s.supersteps([
        { values: asking(1), as_node: "__input__" },
        { values: { items: "by hand" }, as_node: "one" },
        { values: { items: "by hand, too", each: "each" }, as_node: "wide" },
        { values: { told: "nothing" }, as_node: "last" },
      ]),
  },
  "a failed run": {
    everywhere: true,
    does: async (s) => {
      await turns(s);
      await s.run({ input: asking(4, "fail") });
    },
  },
  "a question": {
    does: async (s) => {
      await turns(s);
      await s.run({ input: asking(4, "ask") });
    },
    next: { resume: "yes" },
  },
  "an answered question": {
    does: async (s) => {
      await turns(s);
      await s.run({ input: asking(4, "ask") });
      await s.run({ resume: "yes" });
    },
  },
  "an update while a question waits": {
    does: async (s) => {
      await turns(s);
      await s.run({ input: asking(4, "ask") });
      await s.update({ values: { items: "by hand" }, node: "ask" });
    },
    next: { input: null },
  },
  "a question of a run that stores only its end": {
    does: async (s) => {
      await turns(s);
      await s.run({ input: asking(4, "ask"), durability: "exit" });
    },
    next: { resume: "yes" },
  },
  "a stop before a node": {
    does: async (s) => {
      await turns(s);
      await s.run({ input: asking(4), before: "last" });
    },
    next: { input: null },
  },
  "a cancelled run": {
    does: async (s) => {
      await turns(s);
      await s.cancelledRun(asking(4, "wait"));
    },
  },
  "a run that lost its server": {
    does: async (s) => {
      await turns(s);
      await s.lostRun(asking(4, "wait"));
    },
  },
  "a change of the metadata": {
    does: async (s) => {
      await turns(s);
      await s.update(byHand);
      await s.changeMetadata();
    },
  },
  "a run of the plain graph, and an update of a value that is now a delta channel": {
    does: async (s) => {
      await s.assign("plain");
      await turns(s);
      await s.assign("frequent");
      await s.update(byHand);
    },
  },
  "a run of the plain graph, and an update of another value": {
    does: async (s) => {
      await s.assign("plain");
      await turns(s);
      await s.assign("frequent");
      await s.update({ values: { told: "by hand" }, node: "last" });
    },
  },
};

type Going = (room: Room, threadId: string, subject: Subject) => Promise<unknown>;

const GOINGS = {
  prune: async ({ api }, threadId) => {
    const answer = await api.post("/threads/prune", { thread_ids: [threadId], strategy: "keep_latest" });
    expect(answer.body).toEqual({ pruned_count: 1 });
  },
  /** Of expired threads. */
  sweep: async ({ api, server, sweep }, threadId) => {
    await api.patch(`/threads/${threadId}`, { ttl: { ttl: 10, strategy: "keep_latest" } });
    await query(server, `update threadloom.threads set expires_at = now() where thread_id = '${threadId}'`);
    // Another test's sweep may have this thread.
    await eventually("the thread is swept", async () => {
      await sweep();
      const text = `select from threadloom.threads where thread_id = '${threadId}' and expires_at is null`;
      return (await query(server, text)).length > 0;
    });
  },
  /** Of a later run. */
  rollback: async ({ api }, threadId, { graphId }) => {
    const input = asking(9, "wait");
    const { run_id } = await api.aRun(threadId, { assistant_id: graphId, input });
    await eventually("the run waits", () => isAtGate(threadId));
    expect((await api.cancel(threadId, run_id, "wait=1&action=rollback")).status).toBeLessThan(300);
  },
} satisfies Record<string, Going>;

/** The test servers' settings, with or without encryption. */
const settings = (graphConfigFile: string, { encryptionKeys }: { encryptionKeys?: string[] } = {}) => ({
  graphConfigFile,
  jobsPerWorker: 100,
  traces: "off" as const,
  pendingRunsPerThread: 1_000,
  writesPerMinute: 100_000,
  runsPerMinute: 100_000,
  readsPerMinute: 100_000,
  searchesPerMinute: 100_000,
  ...(encryptionKeys && { encryptionKeys }),
});

const openRoom = async (encryptionKeys: string[] | undefined) => {
  const server = await startTestServer(settings(GRAPHS, { encryptionKeys }));
  const logger = pino({ level: "silent" });
  const database = openDatabase({
    connectionString: server.connectionString,
    poolSize: 4,
    applicationName: "deltas",
    preparedStatements: true,
    ...(encryptionKeys && { encryption: { keys: encryptionKeys, metadataKeys: [] } }),
    logger,
  });
  const checkpoints = createCheckpointStorage({ database, logger });
  const official = PostgresSaver.fromConnString(server.connectionString, { schema: "official" });
  // The pool ends before its connections close, and the forced drop of the database may come first.
  (official as unknown as { pool: Pool }).pool.on("error", () => undefined);
  await official.setup();
  return {
    server: { ...server, encryptionKeys },
    api: apiOf(server),
    official: official as unknown as BaseCheckpointSaver,
    sweep: () => createRetention({ authorize, database, checkpoints, logger }).sweep(),
    async import(threadId: string, graphId: GraphId): Promise<void> {
      const source = new Source({
        connectionString: server.connectionString,
        schema: "official",
        poolSize: 2,
      });
      const report = await importThreads({
        source,
        here: { database, checkpoints },
        threadId,
        graphId,
        threadsTotal: 1,
        onProgress: () => undefined,
        signal: new AbortController().signal,
      });
      await source.close();
      expect(report).toMatchObject({ copied: 1, failed: [], skipped: [] });
    },
    async close() {
      await database.close();
      await official.end();
      await server.close();
    },
  };
};
type Room = Awaited<ReturnType<typeof openRoom>>;

const byCheckpoint = async (api: Api, threadId: string): Promise<Map<string, Shown>> =>
  new Map(
    (await api.history(threadId)).map((state) => [state.checkpoint?.checkpoint_id ?? "", shownState(state)]),
  );

/** The kept checkpoints show what they showed before, and a further run goes on rightly. */
const staysRight = async (
  { room, threadId, graph, way }: Case,
  goings: readonly Going[],
  library: Subject,
): Promise<void> => {
  const { next = { input: asking(5) } } = way;
  const { api, server } = room;
  const before = await byCheckpoint(api, threadId);
  const state = shownState(await api.state(threadId));
  expect(state).toEqual(await library.state());
  await library.run(next);
  const expected = await library.state();
  const threads = [threadId];
  while (threads.length < goings.length) {
    threads.push((await api.post<{ thread_id: string }>(`/threads/${threadId}/copy`)).body.thread_id);
  }
  for (const [index, id] of threads.entries()) {
    const subject = ofServer(server, id, graph);
    await goings[index]?.(room, id, subject);
    if (id === threadId) {
      for (const [at, kept] of await byCheckpoint(api, id)) expect(kept).toEqual(before.get(at));
    }
    expect(await subject.state()).toEqual(state);
    await subject.run(next);
    expect(await subject.state()).toEqual(expected);
  }
};

interface Case {
  room: Room;
  threadId: string;
  graph: GraphId;
  way: Way;
}

const { prune, sweep, rollback } = GOINGS;
const ALL = Object.entries(WAYS);
const SOME = ALL.filter(([, { everywhere }]) => everywhere);

const survives = async (room: Room, graph: GraphId, way: Way, goings: readonly Going[]): Promise<void> => {
  const library = ofLangGraph(new MemorySaver(), graph);
  await way.does(library);
  const threadId = randomUUID();
  await room.api.post("/threads", { thread_id: threadId, metadata: { graph_id: graph } });
  await way.does(ofServer(room.server, threadId, graph));
  await staysRight({ room, threadId, graph, way }, goings, library);
};

const withRoom = (encryptionKeys?: readonly string[]): (() => Room) => {
  let room: Room | undefined;
  beforeAll(async () => {
    room = await openRoom(encryptionKeys && [...encryptionKeys]);
  });
  afterAll(() => room?.close());
  return () => room!;
};

describe("a state in delta channels survives what removes checkpoints", () => {
  const room = withRoom();
  it.concurrent.each(ALL)("after %s", (_, way) =>
    survives(room(), "frequent", way, [prune, rollback, ...(way.everywhere ? [sweep] : [])]),
  );
  it.concurrent.each(SOME)("without snapshots, after %s", (_, way) =>
    survives(room(), "seldom", way, [prune]),
  );
  it.concurrent.each(SOME)("imported after %s", async (_, way) => {
    const [official, library] = [
      ofLangGraph(room().official, "frequent"),
      ofLangGraph(new MemorySaver(), "frequent"),
    ];
    await way.does(official);
    await way.does(library);
    const { threadId } = official;
    await room().import(threadId, "frequent");
    await staysRight({ room: room(), threadId, graph: "frequent", way }, [prune], library);
  });
});

describe("a prune of a thread with delta channels", () => {
  const room = withRoom();
  const stored = async (threadId: string): Promise<string[]> => {
    const text = `select checkpoint_id from threadloom.checkpoints where thread_id = '${threadId}' and checkpoint_ns = ''`;
    return (await query<{ checkpoint_id: string }>(room().server, text)).map((row) => row.checkpoint_id);
  };

  it("removes the ancestors before the snapshots, and hides those whose own state has become incomplete", async () => {
    const { api, server } = room();
    const threadId = await api.aThread();
    const subject = ofServer(server, threadId, "frequent");
    for (let pair = 0; pair < 3; pair += 1) await turns(subject);
    const before = await stored(threadId);
    await prune(room(), threadId);
    const kept = await stored(threadId);
    expect(kept.length).toBeLessThan(before.length / 2);
    const shownIds = new Set((await subject.history()).map(({ id }) => id));
    const hidden = kept.filter((id) => !shownIds.has(id));
    expect(hidden.length).toBeGreaterThan(0);
    for (const id of hidden) expect((await api.get(`/threads/${threadId}/state/${id}`)).status).toBe(404);
  });
});

describe("an encrypted state in delta channels survives a prune", () => {
  const room = withRoom(TEST_KEYS);
  it.concurrent.each(SOME)("after %s", (_, way) => survives(room(), "frequent", way, [prune]));
});
