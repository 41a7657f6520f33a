import type { Connection } from "../server/connection.tsx";
import type { Checkpoint } from "./checkpoint-tree.ts";
import { messagesIn, type ShownMessage } from "./messages.ts";

/** What a graph within the thread's graph has kept: the graph of a node, or one that a tool has called. */
export interface Subgraph {
  node: string;
  /** As time travel names it. */
  namespace: string;
  messages: readonly ShownMessage[];
  /** What it keeps beside messages. */
  others: Record<string, unknown>;
}

/** A task that led away from a checkpoint; only the fields that are looked at. */
export interface SubgraphTask {
  id: string;
  name: string;
  checkpoint?: { checkpoint_ns?: string } | null;
  result?: unknown;
}

/** One step may have sent thousands. */
const GRAPHS_AT_MOST = 20;
/** Of a run, those before a message that are looked into: each is a request, and so is each task of it. */
const STEPS_AT_MOST = 10;

interface SubgraphState {
  checkpoint: { checkpoint_id?: string | null } | null;
  values: Record<string, unknown> | null;
}

/** Whether a task has written something with this text in this field, however deep. */
export const hasWritten = ({ result }: SubgraphTask, field: "id" | "tool_call_id", text: string): boolean =>
  (JSON.stringify(result) ?? "").includes(`"${field}":${JSON.stringify(text)}`);

/**
 * The graphs that these tasks of a checkpoint have run; of tasks that ran none there is nothing.
 * @throws ApiError
 */
export const subgraphsAt = async (
  { request }: Pick<Connection, "request">,
  threadId: string,
  checkpointId: string,
  isRelevant: (task: SubgraphTask) => boolean,
): Promise<Subgraph[]> => {
  const { tasks } = await request<{ tasks?: SubgraphTask[] }>(
    "GET",
    `/threads/${threadId}/state/${checkpointId}?select=tasks`,
  );
  const relevant = (tasks ?? []).filter(isRelevant).slice(0, GRAPHS_AT_MOST);
  const found = await Promise.all(
    relevant.map(async ({ id, name, checkpoint }): Promise<Subgraph | undefined> => {
      // LangGraph names no checkpoint of graphs that tools have called; they lie where those of nodes do.
      const namespace = checkpoint?.checkpoint_ns ?? `${name}:${id}`;
      const state = await request<SubgraphState>("POST", `/threads/${threadId}/state/checkpoint`, {
        checkpoint: { checkpoint_ns: namespace },
      });
      if (state.checkpoint === null) return undefined;
      const { messages, ...others } = state.values ?? {};
      return { node: name, namespace, messages: messagesIn(messages), others };
    }),
  );
  return found.filter((graph) => graph !== undefined);
};

/**
 * The graphs that worked in the steps of a run before one of its messages, the first step first.
 * @param path to the checkpoint before the message
 * @throws ApiError
 */
export const subgraphsOnPath = async (
  connection: Pick<Connection, "request">,
  threadId: string,
  path: readonly Checkpoint[],
): Promise<Subgraph[]> => {
  const begin = path.findLastIndex(({ source }) => source !== "loop");
  const steps = path.slice(begin + 1).slice(-STEPS_AT_MOST);
  let found: Subgraph[] = [];
  for (const { id } of steps.reverse()) {
    if (found.length >= GRAPHS_AT_MOST) break;
    found = [...(await subgraphsAt(connection, threadId, id, () => true)), ...found];
  }
  return found.slice(-GRAPHS_AT_MOST);
};
