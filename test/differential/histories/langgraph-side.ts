import { randomUUID } from "node:crypto";
import type { RunnableConfig } from "@langchain/core/runnables";
import { Command, Send, type StateSnapshot } from "@langchain/langgraph";
import { MemorySaver, type Checkpoint, type CheckpointMetadata } from "@langchain/langgraph-checkpoint";
import type { RunnableGraph } from "../../../src/graphs/runnable-graph.ts";
import { toWireJson } from "../../../src/state/values/wire-json.ts";
import { copy, COPYING } from "./copying.ts";
import { BUILDERS, type GraphName } from "./graphs.ts";
import { withOddValues } from "./odd-values.ts";
import type { RunOptions, Values } from "./operations.ts";
import { answersById, KEEPER, placeIn, type Outcome, type Side } from "./side.ts";
import { seenSnapshot, type Address, type Seen } from "./views.ts";

const wire = (value: unknown): unknown => (value === undefined ? null : JSON.parse(toWireJson(value)));

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const resultOf = (values: unknown): Outcome => {
  const { __interrupt__: interrupts, ...others } = (
    typeof values === "object" && values !== null && !Array.isArray(values) ? values : { values }
  ) as { __interrupt__?: { value: unknown }[] };
  return {
    kind: "values",
    values: wire(others),
    interrupts: (interrupts ?? []).map(({ value }) => wire(value)),
  };
};

/**
 * With durability `exit`, a run without a new step stores its first checkpoint once more. MemorySaver then makes it its own parent, and it loses
 * the snapshots of delta channels, or gets the update of a command again. The server keeps the checkpoint as it is
 * (state/checkpoints/saver.ts).
 */
class Memory extends MemorySaver {
  override async put(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
  ): Promise<RunnableConfig> {
    return config.configurable?.["checkpoint_id"] === checkpoint.id
      ? config
      : await super.put(config, checkpoint, metadata);
  }

  /** Returns a function that brings back what is stored now. Stored values never change. */
  remember(): () => void {
    const shallow = <Value extends object>(value: Value): Value =>
      Object.assign(Object.create(null), value) as Value;
    const storage = shallow(this.storage);
    for (const [thread, namespaces] of Object.entries(storage)) {
      storage[thread] = shallow(namespaces);
      for (const [namespace, checkpoints] of Object.entries(namespaces))
        storage[thread][namespace] = shallow(checkpoints);
    }
    const writes = shallow(this.writes);
    for (const [key, own] of Object.entries(writes)) writes[key] = shallow(own);
    return () => {
      this.storage = storage;
      this.writes = writes;
    };
  }
}

/** MemorySaver has no copies of threads: this one has the same ids, as that of the server. */
const copyThread = (saver: MemorySaver, from: string, to: string): void => {
  saver.storage[to] = copy(saver.storage[from] ?? {});
  for (const [key, writes] of Object.entries(saver.writes)) {
    const [threadId, ...place] = JSON.parse(key) as [string, string, string];
    if (threadId === from) saver.writes[JSON.stringify([to, ...place])] = copy(writes);
  }
};

/**
 * A reducer refuses what a task has written. LangGraph then reads the thread no more, while the server leaves the write out
 * (docs/decisions/012-refused-writes.md).
 */
export class UnreadableError extends Error {
  override readonly name = "UnreadableError";
}

export interface LangGraphSide extends Side {
  /** Of the thread's checkpoints, the newest first: cheaper than its history. */
  ids(): string[];
  /** Whether the newest checkpoint has the update of a command beside it, which only snapshots of the state apply. */
  hasCommand(): boolean;
}

/** What is written about a task that has not ended. */
const NOTES = new Set(["__error__", "__interrupt__", "__resume__"]);
/** LangGraph's task id for the update of a command. */
const COMMAND = "00000000-0000-0000-0000-000000000000";

/** LangGraph alone, with its own checkpointer: the oracle. */
export const createLangGraphSide = (): LangGraphSide => {
  const saver = new Memory(COPYING);
  const former: string[] = [];
  let threadId = randomUUID() as string;
  let graphName: GraphName = "shop";
  let graph: RunnableGraph = BUILDERS.shop(saver);

  const configOf = (address: Partial<Address> = {}, thread = threadId): RunnableConfig => ({
    configurable: { thread_id: thread, ...address },
  });
  /** Tasks of the newest checkpoint that have ended: LangGraph shows their answered questions to the end of the step. */
  const finished = async (thread?: string): Promise<ReadonlySet<string>> => {
    const { pendingWrites = [] } = (await saver.getTuple(configOf({}, thread))) ?? {};
    return new Set(pendingWrites.filter(([, channel]) => !NOTES.has(channel)).map(([taskId]) => taskId));
  };
  const read = async (address: Partial<Address>, thread?: string): Promise<Seen> => {
    try {
      const snapshot = await graph.getState(configOf(address, thread), { subgraphs: true });
      return seenSnapshot(snapshot, address.checkpoint_id === undefined ? await finished(thread) : undefined);
    } catch (error) {
      throw new UnreadableError("LangGraph can't read a state.", { cause: error });
    }
  };
  const addressOf = (id: string | undefined): Partial<Address> =>
    id === undefined ? {} : { checkpoint_id: id };

  const subgraphAt = async (
    number: number,
    id: string | undefined,
    own: boolean,
  ): Promise<Address | undefined> => {
    const { subgraphs } = await read(addressOf(id));
    const all = [...subgraphs, ...(own && graphName === "nest" ? [{ checkpoint_ns: KEEPER }] : [])];
    return all[number % Math.max(all.length, 1)];
  };

  const run = async (
    input: unknown,
    address: Partial<Address>,
    { durability = "async", before, after, failing = false }: RunOptions,
  ): Promise<Outcome> => {
    try {
      const values = await graph.invoke(input, {
        configurable: { thread_id: threadId, ...address, failing },
        durability,
        ...(before === undefined ? {} : { interruptBefore: before }),
        ...(after === undefined ? {} : { interruptAfter: after }),
      });
      return values === undefined ? { kind: "nothing" } : resultOf(values);
    } catch (error) {
      return { kind: "failed", message: messageOf(error) };
    }
  };

  /** The server stores an update whole or not at all (docs/decisions/005-threads.md). */
  const update = async (
    address: Partial<Address>,
    supersteps: readonly (readonly Values[])[],
  ): Promise<Outcome> => {
    const restore = saver.remember();
    try {
      await graph.bulkUpdateState(
        configOf({ checkpoint_ns: "", ...address }),
        supersteps.map((updates) => ({
          updates: updates.map(({ values, as }) => ({
            values: withOddValues(values),
            ...(as === undefined ? {} : { asNode: as }),
          })),
        })),
      );
      return { kind: "done" };
    } catch (error) {
      restore();
      return { kind: "refused", why: messageOf(error) };
    }
  };

  const ids = (): string[] =>
    Object.keys(saver.storage[threadId]?.[""] ?? {})
      .sort()
      .reverse();

  return {
    async begin(history) {
      graphName = history.graph;
      graph = BUILDERS[graphName](saver);
      return history.supersteps.length === 0 ? { kind: "done" } : await update({}, history.supersteps);
    },

    async perform(operation, places) {
      const id = placeIn(places, "at" in operation ? operation.at : undefined);
      switch (operation.do) {
        case "run":
          return await run(withOddValues(operation.input), addressOf(id), operation);
        case "resume": {
          const { ids, count, answers } = operation;
          const { interruptIds } = await read(addressOf(id));
          if (interruptIds.length === 0) return { kind: "skipped" };
          // LangGraph takes a falsy answer for none; the server gives it by ids (engine/executors/run-options.ts).
          const resume =
            ids || !answers[0]
              ? answersById(interruptIds, ids ? count : Infinity, ids ? answers : answers.slice(0, 1))
              : answers[0];
          return await run(new Command({ resume }), addressOf(id), operation);
        }
        case "command": {
          const { update: values, goto, send } = operation;
          const places = goto?.map((node) => (send ? new Send(node, {}) : node));
          const command = new Command({
            ...(values === undefined ? {} : { update: withOddValues(values) as Record<string, unknown> }),
            ...(places === undefined ? {} : { goto: places }),
          });
          return await run(command, addressOf(id), operation);
        }
        case "run in subgraph": {
          const address = await subgraphAt(operation.subgraph, id, false);
          if (address?.checkpoint_id === undefined) return { kind: "skipped" };
          return await run(withOddValues(operation.input), address, operation);
        }
        case "update":
          return await update(addressOf(id), [[operation]]);
        case "update subgraph": {
          const address = await subgraphAt(operation.subgraph, id, true);
          return address === undefined ? { kind: "skipped" } : await update(address, [[operation]]);
        }
        case "copy": {
          const next = randomUUID();
          copyThread(saver, threadId, next);
          former.push(threadId);
          threadId = next;
          return { kind: "done" };
        }
        case "prune":
          return { kind: "done" };
      }
    },

    ids,
    hasCommand: () =>
      Object.values(saver.writes[JSON.stringify([threadId, "", ids()[0]])] ?? {}).some(
        ([task]) => task === COMMAND,
      ),
    head: async () => await read({}),
    at: async (_reader, id) => await read({ checkpoint_id: id }),

    async history(_reader, limit, namespace = "") {
      const seen: Seen[] = [];
      const config = configOf({ checkpoint_ns: namespace });
      for await (const snapshot of graph.getStateHistory(config, { limit }))
        seen.push(seenSnapshot(snapshot as StateSnapshot));
      return seen;
    },

    copied: async () => await Promise.all(former.map((thread) => read({}, thread))),
    end: () => Promise.resolve(),
  };
};
