import { isObject } from "../../platform/lib/json.ts";
import { isMessage } from "../../state/values/types/message.ts";
import { taskIn } from "./origins.ts";
import type { StreamChunk } from "./modes.ts";

type Metadata = Readonly<Record<string, unknown>>;
interface Returned {
  messages: readonly { id?: string }[];
  metadata: Metadata;
}

const areMessages = (values: readonly unknown[]): object[] =>
  values.filter((value): value is object => typeof value === "object" && value !== null && isMessage(value));

/** As LangGraph looks for them. */
const messagesIn = (output: unknown): object[] => {
  if (Array.isArray(output)) return areMessages(output);
  if (!isObject(output)) return [];
  if (output["lg_name"] === "Command") return messagesIn(output["update"]);
  return isMessage(output) ? [output] : areMessages(Object.values(output).flat());
};

/**
 * For requests without subgraphs of runs whose other readers need them. LangGraph sends each message once: there with the
 * subgraph, and for this request with the node of the root that returns the message.
 */
export const createRootMessages = () => {
  /** By task. */
  const returned = new Map<string, Returned>();
  const hidden = new Set<string>();

  const take = ({ messages, metadata }: Returned): StreamChunk[] =>
    messages
      .filter(({ id }) => id !== undefined && hidden.delete(id))
      .map((message) => [[], "messages", [message, metadata]]);

  return {
    hide({ id }: { id?: string }): void {
      if (id !== undefined) hidden.add(id);
    },

    /** A node of any graph has ended. */
    noteReturned(output: unknown, metadata: Metadata): void {
      const task = taskIn(metadata);
      if (task === undefined || task.includes("|")) return;
      const messages = messagesIn(output);
      if (messages.length > 0) returned.set(task, { messages, metadata });
    },

    /** What LangGraph would have sent before this chunk: a node's update, its task's result, or the values of its step. */
    before([namespace, mode, payload]: StreamChunk): StreamChunk[] {
      if (namespace.length > 0 || returned.size === 0 || !isObject(payload)) return [];
      const all = [...returned.values()];
      if (mode === "values") return all.flatMap(take);
      if (mode === "updates")
        return all
          .filter(({ metadata }) => Object.hasOwn(payload, String(metadata["langgraph_node"])))
          .flatMap(take);
      if (mode !== "tasks" || !("result" in payload)) return [];
      const task = `${String(payload["name"])}:${String(payload["id"])}`;
      const ended = returned.get(task);
      returned.delete(task);
      return ended === undefined ? [] : take(ended);
    },
  };
};
