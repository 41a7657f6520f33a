import type { Connection } from "../../server/connection.tsx";
import type { Checkpoint } from "./checkpoint-tree.ts";
import { messagesIn, type ShownMessage } from "./messages.ts";

/** The state of a subgraph, of a node or called by a tool. */
export interface Subgraph {
  node: string;
  /** As in time travel. */
  namespace: string;
  messages: readonly ShownMessage[];
  /** All keys except `messages`. */
  others: Record<string, unknown>;
}

export interface SubgraphTask {
  id: string;
  name: string;
  checkpoint?: { checkpoint_ns?: string } | null;
  result?: unknown;
}

/** One step may have sent thousands of tasks. */
const GRAPHS_AT_MOST = 20;
/** Each step and each task costs a request. */
const STEPS_AT_MOST = 10;

interface SubgraphState {
  checkpoint: { checkpoint_id?: string | null } | null;
  values: Record<string, unknown> | null;
}

/** Whether the result contains this field with this text at any depth. */
export const hasWritten = ({ result }: SubgraphTask, field: "id" | "tool_call_id", text: string): boolean =>
  (JSON.stringify(result) ?? "").includes(`"${field}":${JSON.stringify(text)}`);

/**
 * Skips tasks without a subgraph.
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
      // LangGraph gives no checkpoint for a subgraph that a tool called, but stores it under the same kind of
      // namespace.
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
 * The subgraphs of the run's steps before a message, in order.
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
