/** How an attempt came to its end, as far as its graph knows. */
export type GraphEnd = "completed" | "interrupted" | "failed";

/** What LangGraph streams in the mode `tasks`, of a task that begins, or has ended (with `result`). */
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
  /** `held`: not told yet, for its name comes with its first task. */
  state: "held" | "started" | "ended";
  held: (() => void)[];
  /** The call of a tool that has started it. */
  toolCallId?: string | undefined;
  /** The name that `createAgent` gives, of the graph itself or of one around it. */
  agentName: string | undefined;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null;

/** Told where a graph within the root starts, or has ended. */
export type PublishLifecycle = (
  path: readonly string[],
  event: "started" | GraphEnd,
  facts: { name: string; toolCallId: string | undefined },
) => void;

/** No segment of a path has it: they are names of nodes with ids of tasks, and LangGraph refuses such names. */
const keyOf = (path: readonly string[]): string => path.join("|");

/** The node that has called a graph; the second graph that a node calls has a number behind that. */
const nodeOf = (path: readonly string[]): string => {
  const segment = path.findLast((part) => part.includes(":")) ?? path.at(-1) ?? "";
  const colon = segment.indexOf(":");
  return colon === -1 ? segment : segment.slice(0, colon);
};

/** The call of a tool for which a task was made: `createAgent` gives it to the task beside the state. */
const toolCallOf = (input: unknown): string | undefined => {
  const calls: unknown[] = isObject(input) ? [input["lg_tool_call"], input["tool_call"]] : [];
  for (const call of calls) if (isObject(call) && typeof call["id"] === "string") return call["id"];
  return undefined;
};

/**
 * The lifecycle of the graphs within the root: a graph has started when the first chunk of its own comes, and has ended with
 * the task of the node that has called it. What it tells before its first task is held until then, which is at once:
 * that task says by which name an agent goes.
 */
export const createSubgraphs = (publish: PublishLifecycle) => {
  const graphs = new Map<string, Subgraph>([
    ["", { path: [], state: "started", held: [], agentName: undefined }],
  ]);
  /** By task: the call of a tool that it executes. */
  const toolCalls = new Map<string, string>();
  /** By interrupt: the path of the innermost graph that has asked. */
  const asked = new Map<string, readonly string[]>();
  /** By the path of their graph: the node whose update was told last. */
  const updated = new Map<string, string>();

  const lifecycle = (graph: Subgraph, event: "started" | GraphEnd): void => {
    const { path, toolCallId } = graph;
    publish(path, event, { name: ownName(graph) ?? nodeOf(path), toolCallId });
  };
  /** An agent's name is handed down to the graphs that it calls: theirs it is only if the one around has another. */
  const ownName = ({ path, agentName }: Subgraph): string | undefined =>
    agentName === around(path.slice(0, -1)).agentName ? undefined : agentName;

  /** The graph at this path, or the innermost one around it. */
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
    lifecycle(graph, how);
    // Thousands of graphs may have ended where a few go on.
    graphs.delete(keyOf(graph.path));
    updated.delete(keyOf(graph.path));
  };
  /** Those at this path and below it, the innermost first. */
  const endBelow = (path: readonly string[], how: GraphEnd): void => {
    const below = [...graphs.values()].filter(
      (graph) => graph.path.length > 0 && path.every((segment, depth) => graph.path[depth] === segment),
    );
    for (const graph of below.sort((a, b) => b.path.length - a.path.length)) end(graph, how);
  };

  /** The graphs around one that asks name its interrupts, too, and do so later. */
  const noteAsked = (path: readonly string[], interrupts: readonly unknown[]): void => {
    for (const interrupt of interrupts) {
      const id = isObject(interrupt) ? interrupt["id"] : undefined;
      if (typeof id === "string" && (asked.get(id)?.length ?? 0) <= path.length) asked.set(id, path);
    }
  };

  return {
    /** The interrupt with the path of the graph that asks, as `ns`. */
    placed: (interrupt: unknown): unknown => {
      const path = isObject(interrupt) ? asked.get(String(interrupt["id"])) : undefined;
      return path === undefined || path.length === 0 ? interrupt : { ...(interrupt as object), ns: path };
    },

    /** The path of the graph in which something at this path happens: that of a task is none. */
    pathAround: (path: readonly string[]): readonly string[] => {
      const graph = around(path);
      start(graph);
      return graph.path;
    },

    /** Tells of a graph what needs no task of it. */
    whenNamed(path: readonly string[], publisher: () => void): void {
      const graph = find(path);
      if (graph.state === "held") graph.held.push(publisher);
      else publisher();
    },

    /** Before what a graph says of itself is told by who needs no name of it. */
    begun(path: readonly string[]): void {
      start(find(path));
    },

    /** Before a chunk of the mode `tasks` is told. */
    beforeTask(path: readonly string[], payload: unknown): void {
      const { id, input, metadata, result } = payload as TaskChunk;
      const graph = find(path);
      if (result === undefined && typeof id === "string") {
        const name = metadata?.lc_agent_name;
        if (typeof name === "string" && graph.state !== "ended") graph.agentName = name;
        const callId = toolCallOf(input);
        if (callId !== undefined) toolCalls.set(id, callId);
      }
      start(graph);
    },

    /** After a chunk of the mode `tasks` was told. */
    afterTask(path: readonly string[], payload: unknown): void {
      const { id, name, result, interrupts } = payload as TaskChunk;
      if (result === undefined || typeof id !== "string" || typeof name !== "string") return;
      toolCalls.delete(id);
      const isInterrupted = Array.isArray(interrupts) && interrupts.length > 0;
      if (isInterrupted) noteAsked(path, interrupts);
      // Of a node that has failed LangGraph says neither an update nor anything in the result. It may be tried again.
      const isSilent = isObject(result) && Object.keys(result).length === 0;
      if (!isInterrupted && isSilent && updated.get(keyOf(path)) !== name) return;
      const called = [...path, `${name}:${id}`];
      if (graphs.has(keyOf(called))) endBelow(called, isInterrupted ? "interrupted" : "completed");
    },

    /** A node of the graph at this path has returned. */
    noteUpdate(path: readonly string[], node: string): void {
      updated.set(keyOf(path), node);
    },

    /** Nothing is streamed any more. */
    end(how: GraphEnd): void {
      endBelow([], how);
    },
  };
};
