import { isObject } from "../../../platform/lib/json.ts";
import type { RunSelector } from "../../queue/attempts.ts";
import type { EventLog } from "../log.ts";
import { PROTOCOL_EVENT_PREFIX } from "../wires.ts";
import type { ProtocolParams } from "./events.ts";

export type GraphEnd = "completed" | "interrupted" | "failed";

/** A chunk of LangGraph's mode `tasks`: a task begins, or has ended (with `result`). */
interface TaskChunk {
  id?: unknown;
  name?: unknown;
  input?: unknown;
  result?: unknown;
  interrupts?: unknown;
  metadata?: { lc_agent_name?: unknown };
}

interface Subgraph {
  path: readonly string[];
  /** `held`: not published yet, because the name comes with the first task. */
  state: "held" | "started" | "ended";
  held: (() => void)[];
  /** How the subgraph ended, while clients can't read its state yet. */
  ending?: GraphEnd;
  toolCallId?: string | undefined;
  /** The name from `createAgent`, of this graph or an outer one. */
  agentName: string | undefined;
}

type PublishLifecycle = (
  path: readonly string[],
  event: "started" | GraphEnd,
  facts: { name: string; toolCallId: string | undefined },
) => void;

/** Calls `end` when clients can read what a task of this graph wrote. `isStepOver`: it was the last task of its step. */
export type WhenReadable = (graph: readonly string[], isStepOver: boolean, end: () => void) => void;
const AT_ONCE: WhenReadable = (_graph, _isStepOver, end) => end();

/** `|` can't occur in a segment: LangGraph refuses such node names. */
const keyOf = (path: readonly string[]): string => path.join("|");

/** The calling node. From the node's second graph on, a number follows its segment. */
const nodeOf = (path: readonly string[]): string => {
  const segment = path.findLast((part) => part.includes(":")) ?? path.at(-1) ?? "";
  const colon = segment.indexOf(":");
  return colon === -1 ? segment : segment.slice(0, colon);
};

/** `createAgent` passes the tool call of a task beside the state. */
const toolCallOf = (input: unknown): string | undefined => {
  const calls: unknown[] = isObject(input) ? [input["lg_tool_call"], input["tool_call"]] : [];
  for (const call of calls) if (isObject(call) && typeof call["id"] === "string") return call["id"];
  return undefined;
};

/**
 * A subgraph starts with its first chunk and ends with the task of the calling node. Its events wait for its
 * first task, which follows at once and has the name of an agent.
 */
export const createSubgraphs = (publish: PublishLifecycle, whenReadable = AT_ONCE) => {
  const graphs = new Map<string, Subgraph>([
    ["", { path: [], state: "started", held: [], agentName: undefined }],
  ]);
  const toolCalls = new Map<string, string>();
  /** Interrupt id -> path of the innermost graph that raised the interrupt. */
  const asked = new Map<string, readonly string[]>();
  const updated = new Map<string, string>();
  /** The number of tasks of each graph's present step. */
  const running = new Map<string, number>();
  const countTask = (graph: string, by: 1 | -1): number => {
    const count = (running.get(graph) ?? 0) + by;
    running.set(graph, count);
    return count;
  };

  const lifecycle = (graph: Subgraph, event: "started" | GraphEnd): void => {
    const { path, toolCallId } = graph;
    publish(path, event, { name: ownName(graph) ?? nodeOf(path), toolCallId });
  };
  /** Inner graphs inherit an agent's name, so an equal name is not their own. */
  const ownName = ({ path, agentName }: Subgraph): string | undefined =>
    agentName === around(path.slice(0, -1)).agentName ? undefined : agentName;

  const around = (path: readonly string[]): Subgraph => {
    for (let length = path.length; length > 0; length -= 1) {
      const graph = graphs.get(keyOf(path.slice(0, length)));
      if (graph !== undefined) return graph;
    }
    return graphs.get("") as Subgraph;
  };

  const find = (path: readonly string[]): Subgraph => {
    const key = keyOf(path);
    let graph = graphs.get(key);
    if (graph === undefined) {
      const { agentName } = around(path);
      graph = { path, state: "held", held: [], agentName };
      graphs.set(key, graph);
    }
    return graph;
  };
  const start = (graph: Subgraph): void => {
    if (graph.state !== "held") return;
    graph.state = "started";
    const [, taskId = ""] = (graph.path.findLast((part) => part.includes(":")) ?? "").split(":");
    graph.toolCallId = toolCalls.get(taskId);
    lifecycle(graph, "started");
    for (const held of graph.held.splice(0)) held();
  };
  const end = (graph: Subgraph, how: GraphEnd): void => {
    start(graph);
    if (graph.state === "ended") return;
    graph.state = "ended";
    lifecycle(graph, graph.ending ?? how);
    // Bounds memory: thousands of graphs may end during a run.
    graphs.delete(keyOf(graph.path));
    updated.delete(keyOf(graph.path));
    running.delete(keyOf(graph.path));
  };
  const below = (path: readonly string[]): Subgraph[] =>
    [...graphs.values()].filter(
      (graph) => graph.path.length > 0 && path.every((segment, depth) => graph.path[depth] === segment),
    );
  const endBelow = (path: readonly string[], how: GraphEnd): void => {
    for (const graph of below(path).sort((a, b) => b.path.length - a.path.length)) end(graph, how);
  };

  /** Outer graphs report the same interrupts later, so the longest path stays. */
  const noteAsked = (path: readonly string[], interrupts: readonly unknown[]): void => {
    for (const interrupt of interrupts) {
      const id = isObject(interrupt) ? interrupt["id"] : undefined;
      if (typeof id === "string" && (asked.get(id)?.length ?? 0) <= path.length) asked.set(id, path);
    }
  };

  return {
    /** Adds the path of the interrupted graph as `ns`. */
    placed: (interrupt: unknown): unknown => {
      const path = isObject(interrupt) ? asked.get(String(interrupt["id"])) : undefined;
      return path === undefined || path.length === 0 ? interrupt : { ...(interrupt as object), ns: path };
    },

    pathAround: (path: readonly string[]): readonly string[] => {
      const graph = around(path);
      start(graph);
      return graph.path;
    },

    whenNamed(path: readonly string[], publisher: () => void): void {
      const graph = find(path);
      if (graph.state === "held") graph.held.push(publisher);
      else publisher();
    },

    begun(path: readonly string[]): void {
      start(find(path));
    },

    beforeTask(path: readonly string[], payload: unknown): void {
      const { id, input, metadata, result } = payload as TaskChunk;
      const graph = find(path);
      if (result === undefined && typeof id === "string") {
        countTask(keyOf(path), 1);
        const name = metadata?.lc_agent_name;
        if (typeof name === "string" && graph.state !== "ended") graph.agentName = name;
        const callId = toolCallOf(input);
        if (callId !== undefined) toolCalls.set(id, callId);
      }
      start(graph);
    },

    afterTask(path: readonly string[], payload: unknown): void {
      const { id, name, result, interrupts } = payload as TaskChunk;
      if (result === undefined || typeof id !== "string" || typeof name !== "string") return;
      toolCalls.delete(id);
      const isStepOver = countTask(keyOf(path), -1) <= 0;
      const isInterrupted = Array.isArray(interrupts) && interrupts.length > 0;
      if (isInterrupted) noteAsked(path, interrupts);
      // A failed node has neither an update nor a result, and may be retried.
      const isSilent = typeof result === "object" && result !== null && Object.keys(result).length === 0;
      if (!isInterrupted && isSilent && updated.get(keyOf(path)) !== name) return;
      const called = [...path, `${name}:${id}`];
      if (!graphs.has(keyOf(called))) return;
      const how = isInterrupted ? "interrupted" : "completed";
      for (const graph of below(called)) graph.ending ??= how;
      whenReadable(path, isStepOver && !isInterrupted, () => endBelow(called, how));
    },

    /** LangGraph sends no result of a task that an earlier run or attempt has ended, only an update with `cached`. */
    noteCached(path: readonly string[], payload: unknown): void {
      const metadata = isObject(payload) ? payload["__metadata__"] : undefined;
      if (isObject(metadata) && metadata["cached"] === true) countTask(keyOf(path), -1);
    },

    noteUpdate(path: readonly string[], node: string): void {
      updated.set(keyOf(path), node);
    },

    /** An earlier attempt has begun it. If this attempt does not repeat it, it ends with the run. */
    reopen({ path, name }: OpenSubgraph): void {
      graphs.set(keyOf(path), { path, state: "started", held: [], agentName: name });
    },

    isOpen: (): boolean => graphs.size > 1,

    end(how: GraphEnd): void {
      endBelow([], how);
    },
  };
};

const LIFECYCLE = `${PROTOCOL_EVENT_PREFIX}lifecycle`;
/** Most runs have a few. With more, some could be ended twice. */
const EVENTS_AT_MOST = 2_000;

export interface OpenSubgraph {
  path: readonly string[];
  name: string;
}

/**
 * Subgraphs that earlier attempts began and, by the log, did not end. If a server died between a step's checkpoint and
 * the ends of the step's subgraphs, no attempt repeats them.
 */
export const openSubgraphs = async (
  log: Pick<EventLog, "named">,
  run: RunSelector,
): Promise<OpenSubgraph[]> => {
  const events = await log.named(run, LIFECYCLE, EVENTS_AT_MOST);
  if (events.length === EVENTS_AT_MOST) return [];
  const open = new Map<string, OpenSubgraph>();
  for (const { data } of events) {
    const { namespace, data: sent } = JSON.parse(data) as ProtocolParams;
    const { event, graph_name: name } = isObject(sent) ? sent : {};
    const key = namespace.join("|");
    if (event === "started") open.set(key, { path: namespace, name: String(name) });
    else open.delete(key);
  }
  return [...open.values()];
};
