import type { GraphSchema } from "@langchain/langgraph-sdk";
import { useQuery } from "@tanstack/react-query";
import { v5 } from "uuid";
import { truncate } from "../design/truncate.ts";
import { useConnection } from "../server/connection.tsx";

/** Must equal the server's namespace (src/platform/domain/assistant-ids.ts). */
const SYSTEM_ASSISTANT_NAMESPACE = "6ba7b821-9dad-11d1-80b4-00c04fd430c8";

export interface NamedAssistant {
  assistant_id: string;
  graph_id: string;
  name: string;
}

/** Whether the assistant is the default one of its graph. */
export const isOfGraph = ({
  assistant_id,
  graph_id,
}: Pick<NamedAssistant, "assistant_id" | "graph_id">): boolean =>
  assistant_id === v5(graph_id, SYSTEM_ASSISTANT_NAMESPACE);

/** Far more than any known server has. */
const GRAPHS_AT_MOST = 1_000;

export const useGraphIds = () => {
  const { client } = useConnection();
  return useQuery({
    queryKey: ["assistants", "graphs"],
    staleTime: 60_000,
    queryFn: async ({ signal }) => {
      const assistants = await client.assistants.search({
        metadata: { created_by: "system" },
        limit: GRAPHS_AT_MOST,
        select: ["assistant_id", "graph_id"],
        signal,
      });
      return assistants
        .filter(isOfGraph)
        .map(({ graph_id }) => graph_id)
        .sort();
    },
  });
};

/** Provisional schemas lack the types of some fields. */
type Schemas = GraphSchema & { provisional?: true };
const POLL_MS = 1_000;

/**
 * Repeats the request while the schemas are provisional.
 * @param reference the id of an assistant or a graph; undefined: no request
 */
export const useSchemas = (reference: string | undefined) => {
  const { client } = useConnection();
  return useQuery({
    queryKey: ["assistants", "schemas", reference],
    queryFn: async ({ signal }): Promise<Schemas> =>
      await client.assistants.getSchemas(reference ?? "", { signal }),
    enabled: reference !== undefined,
    staleTime: 60_000,
    refetchInterval: ({ state }) => (state.data?.provisional === true ? POLL_MS : false),
  });
};

export const useDrawing = (assistantId: string | undefined) => {
  const { client } = useConnection();
  return useQuery({
    queryKey: ["assistants", "graph", assistantId],
    queryFn: ({ signal }) => client.assistants.getGraph(assistantId ?? "", { xray: true, signal }),
    enabled: assistantId !== undefined,
    staleTime: 60_000,
  });
};

/** Other assistants can be opened by their ids. */
const LISTED_AT_MOST = 500;

export const useAssistantNames = () => {
  const { client } = useConnection();
  return useQuery({
    queryKey: ["assistants", "names"],
    queryFn: async ({ signal }): Promise<NamedAssistant[]> =>
      await client.assistants.search({
        limit: LISTED_AT_MOST,
        sortBy: "name",
        sortOrder: "asc",
        select: ["assistant_id", "graph_id", "name"],
        signal,
      }),
    staleTime: 60_000,
  });
};

/** The default assistant of a graph has the name of the graph. */
export const assistantText = ({ name, graph_id }: NamedAssistant): string =>
  name === graph_id ? truncate(name) : `${truncate(name) || "unnamed"} (${truncate(graph_id)})`;
