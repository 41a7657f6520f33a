import { useMutation, useQuery, useQueryClient, keepPreviousData } from "@tanstack/react-query";
import { useConnection } from "../server/connection.tsx";

export const PAGE_SIZE = 20;
const VERSIONS_AT_MOST = 1_000;

export interface AssistantFilter {
  name: string;
  /** Empty: all graphs. */
  graphId: string;
  page: number;
}

/** Newest first. */
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
          // Without contexts, which may be large.
          select: ["assistant_id", "graph_id", "name", "description", "version", "updated_at"],
        }),
        client.assistants.count(query),
      ]);
      return { assistants, total };
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
    queryFn: ({ signal }) => client.assistants.getVersions(assistantId, { limit: VERSIONS_AT_MOST, signal }),
  });
};

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
