import { Command, type StateSnapshot } from "@langchain/langgraph";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { RunnableGraph } from "../../../src/graphs/runnable-graph.ts";
import { toWireJson } from "../../../src/state/values/wire-json.ts";
import { openThreadsRoom, type State, type ThreadsRoom } from "./threads-room.ts";

let room: ThreadsRoom;
beforeAll(async () => {
  room = await openThreadsRoom();
});
afterAll(() => room.close());

const human = (content: string) => ({ messages: [{ role: "user", content }] });

/** The inputs of each graph, turn by turn; after each turn the test checks every checkpoint. */
const TURNS: Record<string, unknown[]> = {
  agent: [human("What is 2 + 3?"), human("And the weather in Paris?")],
  approval: [
    human("refund"),
    new Command({ resume: "what?" }),
    new Command({ resume: true }),
    human("again"),
    new Command({ resume: { decision: "reject" } }),
  ],
  research: [human("bees"), human("ants")],
  "two-step": [human("one"), human("two"), human("three")],
  "ten-steps": [human("one")],
  sleep: [{ ...human("one"), milliseconds: 1 }],
  "custom-events": [{ count: 2 }],
  failing: [{ reason: "broken" }],
  stubborn: [{ milliseconds: 1 }],
  blocking: [{ milliseconds: 1 }],
  counter: [human("one"), { count: 5 }],
  tokens: [{ ...human("one"), tokens: 3 }],
  "fan-out": [human("one"), new Command({ resume: "yes" })],
  "nested-approval": [{ text: "a" }, new Command({ resume: "yes" }), { text: "b" }],
  "odd-channels": ["hello", "again"],
  "odd-values": [{}],
  "delta-messages": [human("one"), human("two")],
  functional: [{ value: 4 }, new Command({ resume: "yes" })],
  factory: [{ text: "a" }, { text: "b" }],
  throwing: [{ count: 1 }],
};

type Config = StateSnapshot["config"];

const address = (config: Config | undefined) => {
  const { thread_id, checkpoint_ns = "", checkpoint_id, checkpoint_map = null } = config?.configurable ?? {};
  return checkpoint_id === undefined
    ? null
    : {
        thread_id: thread_id as unknown,
        checkpoint_ns: checkpoint_ns as unknown,
        checkpoint_id: checkpoint_id as unknown,
        checkpoint_map: checkpoint_map as unknown,
      };
};

/** Builds the API's state from LangGraph's, independently of the server's code. */
const expectedState = (snapshot: StateSnapshot): State =>
  JSON.parse(
    toWireJson({
      values: snapshot.values as unknown,
      next: snapshot.next,
      tasks: snapshot.tasks.map((task) => ({
        id: task.id,
        name: task.name,
        path: task.path,
        error: (task.error as { message?: string } | undefined)?.message ?? null,
        interrupts: task.interrupts,
        checkpoint: task.state !== undefined && "configurable" in task.state ? task.state.configurable : null,
        state: task.state !== undefined && "values" in task.state ? expectedState(task.state) : null,
        result: (task as { result?: unknown }).result ?? null,
      })),
      metadata: snapshot.metadata,
      created_at: snapshot.createdAt ?? null,
      checkpoint: address(snapshot.config),
      parent_checkpoint: address(snapshot.parentConfig),
      interrupts: snapshot.tasks.flatMap((task) => task.interrupts),
    }),
  ) as State;

const everyState = async (graph: RunnableGraph, config: Config): Promise<State[]> => {
  const states: State[] = [];
  for await (const snapshot of graph.getStateHistory(config))
    states.push(expectedState(snapshot as StateSnapshot));
  return states;
};

const get = async <Body>(path: string) => (await room.request<Body>("GET", path)).body;

/** Reads every checkpoint of a thread in every way, and compares with LangGraph's own result. */
const compare = async (graphId: string, threadId: string): Promise<number> => {
  const graph = await room.graph(graphId);
  const config = { configurable: { thread_id: threadId } };
  const head = expectedState((await graph.getState(config)) as StateSnapshot);
  expect(await get(`/threads/${threadId}/state`)).toEqual(head);
  const deep = expectedState((await graph.getState(config, { subgraphs: true })) as StateSnapshot);
  expect(await get(`/threads/${threadId}/state?subgraphs=true`)).toEqual(deep);
  const all = await everyState(graph, config);
  expect((await room.request("POST", `/threads/${threadId}/history`, { limit: 1000 })).body).toEqual(all);
  for (const state of all) {
    expect(await get(`/threads/${threadId}/state/${state.checkpoint?.checkpoint_id ?? ""}`)).toEqual(state);
  }
  expect((await get<{ values: unknown }>(`/threads/${threadId}`)).values).toEqual(all[0]?.values ?? null);
  return all.length;
};

describe("a state equals the one that LangGraph reads", () => {
  it.each(Object.entries(TURNS))("for every checkpoint of the graph %s", async (graphId, turns) => {
    const { thread_id: id } = await room.aThread();
    for (const input of turns) {
      await room.run(graphId, id, input).catch(() => undefined); // a failed run leaves a state, too
      expect(await compare(graphId, id)).toBeGreaterThan(0);
    }
  });

  it.each(["two-step", "approval", "fan-out"])(
    "for the forks and updates of the graph %s",
    async (graphId) => {
      const { thread_id: id } = await room.aThread();
      await room.run(graphId, id, human("one"));
      const states = await get<State[]>(`/threads/${id}/history?limit=100`);
      const middle = states[Math.floor(states.length / 2)];
      const asNode = Object.keys((await room.graph(graphId)).nodes)[1];
      for (const body of [
        { values: human("updated"), checkpoint: middle?.checkpoint, as_node: asNode },
        { values: null, as_node: "__copy__", checkpoint_id: middle?.checkpoint?.checkpoint_id },
        { values: human("input"), as_node: "__start__" },
        { values: null, as_node: "__end__" },
      ]) {
        const updated = await room.request("POST", `/threads/${id}/state`, body);
        expect([updated.status, updated.body]).toMatchObject([200, { checkpoint: { thread_id: id } }]);
        await compare(graphId, id);
      }
    },
  );

  it("for every checkpoint of a subgraph, in its namespace", async () => {
    const { thread_id: id } = await room.aThread();
    await room.run("nested-approval", id, { text: "a" });
    const head = await get<State>(`/threads/${id}/state`);
    const place = head.tasks[0]?.checkpoint as { checkpoint_ns: string };
    expect(place.checkpoint_ns).toMatch(/^inner:/);
    const config = { configurable: { thread_id: id, checkpoint_ns: place.checkpoint_ns } };
    const graph = await room.graph("nested-approval");
    const inner = await room.request<State>("POST", `/threads/${id}/state/checkpoint`, { checkpoint: place });
    expect(inner.body).toEqual(expectedState((await graph.getState(config)) as StateSnapshot));
    expect(inner.body).toMatchObject({ next: ["confirm"], values: { text: "a, begun, prepared" } });
    const history = await room.request<State[]>("POST", `/threads/${id}/history`, {
      checkpoint: place,
      limit: 100,
    });
    expect(history.body).toEqual(await everyState(graph, config));
    expect(history.body.length).toBeGreaterThan(1);
  });
});
