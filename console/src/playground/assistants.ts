import type { Assistant } from "@langchain/langgraph-sdk";
import { useQuery } from "@tanstack/react-query";
import { isOfGraph } from "../parts/assistants.ts";
import { useConnection } from "../server/connection.tsx";

/** In one list to choose from; who has more opens one from the page of assistants, which names it in the address. */
const ASSISTANTS_AT_MOST = 500;
const GRAPHS_AT_MOST = 1_000;

const byName = (one: Assistant, other: Assistant): number => one.name.localeCompare(other.name);

/** All assistants: graphs first, then those that somebody named. */
export const useAssistants = () => {
  const { client } = useConnection();
  return useQuery({
    queryKey: ["assistants", "choice"],
    queryFn: async () => {
      // Graphs apart: theirs are the oldest assistants, and the newest come first.
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

/** The assistant of an address, which no list may have; by its id or the id of its graph. */
export const useAssistant = (assistantId: string | undefined) => {
  const { client } = useConnection();
  return useQuery({
    queryKey: ["assistants", "one", assistantId],
    queryFn: () => client.assistants.get(assistantId ?? ""),
    enabled: assistantId !== undefined,
  });
};

/** What an assistant of a thread was, as its metadata tell. */
export const assistantOfThread = (
  metadata: Record<string, unknown> | null | undefined,
  assistants: readonly Assistant[],
): Assistant | undefined =>
  assistants.find(({ assistant_id }) => assistant_id === metadata?.["assistant_id"]) ??
  assistants.find((one) => isOfGraph(one) && one.graph_id === metadata?.["graph_id"]);
