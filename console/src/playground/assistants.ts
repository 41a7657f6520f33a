import type { Assistant } from "@langchain/langgraph-sdk";
import { useQuery } from "@tanstack/react-query";
import { isOfGraph } from "../parts/assistants.ts";
import { useConnection } from "../server/connection.tsx";

const ASSISTANTS_AT_MOST = 500;
const GRAPHS_AT_MOST = 1_000;

const byName = (one: Assistant, other: Assistant): number => one.name.localeCompare(other.name);

/** Graphs first, then other assistants. */
export const useAssistants = () => {
  const { client } = useConnection();
  return useQuery({
    queryKey: ["assistants", "choice"],
    queryFn: async () => {
      // Default assistants are the oldest, and the newest come first.
      const [graphs, others] = await Promise.all([
        client.assistants.search({ metadata: { created_by: "system" }, limit: GRAPHS_AT_MOST }),
        client.assistants.search({ limit: ASSISTANTS_AT_MOST }),
      ]);
      return [
        ...graphs.filter(isOfGraph).sort(byName),
        ...others.filter((one) => !isOfGraph(one)).sort(byName),
      ];
    },
  });
};

/** Accepts the id of a graph. */
export const useAssistant = (assistantId: string | undefined) => {
  const { client } = useConnection();
  return useQuery({
    queryKey: ["assistants", "one", assistantId],
    queryFn: () => client.assistants.get(assistantId ?? ""),
    enabled: assistantId !== undefined,
  });
};

export const assistantOfThread = (
  metadata: Record<string, unknown> | null | undefined,
  assistants: readonly Assistant[],
): Assistant | undefined =>
  assistants.find(({ assistant_id }) => assistant_id === metadata?.["assistant_id"]) ??
  assistants.find((one) => isOfGraph(one) && one.graph_id === metadata?.["graph_id"]);
