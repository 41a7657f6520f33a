import type { Assistant } from "@langchain/langgraph-sdk";
import { useMutation, useQuery, useQueryClient, keepPreviousData } from "@tanstack/react-query";
import { v5 } from "uuid";
import { useConnection } from "../server/connection.tsx";

/** As the server makes the ids of the assistants that graph ids stand for (domain/assistant-ids.ts); part of the wire. */
const SYSTEM_ASSISTANT_NAMESPACE = "6ba7b821-9dad-11d1-80b4-00c04fd430c8";

/** Whether a graph's id stands for this assistant: the server makes one for each graph. */
export const isOfGraph = ({ assistant_id, graph_id }: Assistant): boolean =>
  assistant_id === v5(graph_id, SYSTEM_ASSISTANT_NAMESPACE);

export const PAGE_SIZE = 20;
/** Of graphs to choose from, and of versions of one assistant. */
const CHOICES_AT_MOST = 1_000;

export interface AssistantFilter {
  name: string;
  /** Empty: all graphs. */
  graphId: string;
  page: number;
}

/** One page, newest first, and whether there is another one. */
export const useAssistantPage = ({ name, graphId, page }: AssistantFilter) => {
  const { client } = useConnection();
  return useQuery({
    queryKey: ["assistants", "page", { name, graphId, page }],
    placeholderData: keepPreviousData,
    queryFn: async ({ signal }) => {
      const query = { ...(name !== "" && { name }), ...(graphId !== "" && { graphId }), signal };
      const [assistants, total] = await Promise.all([
        client.assistants.search({
          ...query,
          limit: PAGE_SIZE,
          offset: page * PAGE_SIZE,
          sortBy: "updated_at",
          sortOrder: "desc",
          // Contexts may be large, and a list shows none.
          select: ["assistant_id", "graph_id", "name", "description", "version", "updated_at"],
        }),
        client.assistants.count(query),
      ]);
      return { assistants, total };
    },
  });
};

/** The ids of the graphs: each has an assistant that the server made. */
export const useGraphIds = () => {
  const { client } = useConnection();
  return useQuery({
    queryKey: ["assistants", "graphs"],
    staleTime: 60_000,
    queryFn: async ({ signal }) => {
      const assistants = await client.assistants.search({
        metadata: { created_by: "system" },
        limit: CHOICES_AT_MOST,
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

export const useOneAssistant = (assistantId: string) => {
  const { client } = useConnection();
  return useQuery({
    queryKey: ["assistants", "one", assistantId],
    queryFn: ({ signal }) => client.assistants.get(assistantId, { signal }),
  });
};

/** Newest first. */
export const useVersions = (assistantId: string) => {
  const { client } = useConnection();
  return useQuery({
    queryKey: ["assistants", "versions", assistantId],
    queryFn: ({ signal }) => client.assistants.getVersions(assistantId, { limit: CHOICES_AT_MOST, signal }),
  });
};

/** The schema of a graph's context; older graphs call it configurable. Null if it says nothing. */
export const useContextSchema = (graphId: string) => {
  const { client } = useConnection();
  return useQuery({
    queryKey: ["assistants", "schemas", graphId],
    staleTime: 60_000,
    queryFn: ({ signal }) => client.assistants.getSchemas(graphId, { signal }),
    select: ({ context_schema, config_schema }): unknown => context_schema ?? config_schema ?? null,
  });
};

/** Something that changes assistants: whatever is shown of them is asked for again. */
export const useAssistantChange = <Input, Output>(
  change: (input: Input) => Promise<Output>,
  onSuccess?: (output: Output) => void,
) => {
  const queries = useQueryClient();
  return useMutation({
    mutationFn: change,
    onSuccess: async (output) => {
      onSuccess?.(output);
      await queries.invalidateQueries({ queryKey: ["assistants"] });
    },
  });
};
