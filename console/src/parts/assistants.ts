import type { GraphSchema } from "@langchain/langgraph-sdk";
import { useQuery } from "@tanstack/react-query";
import { v5 } from "uuid";
import { truncate } from "./truncate.ts";
import { useConnection } from "../server/connection.tsx";

/** As the server makes the ids of the assistants that graph ids stand for (platform/domain/assistant-ids.ts); part of the wire. */
const SYSTEM_ASSISTANT_NAMESPACE = "6ba7b821-9dad-11d1-80b4-00c04fd430c8";

/** What an assistant is called by. */
export interface NamedAssistant {
  assistant_id: string;
  graph_id: string;
  name: string;
}

/** Whether a graph's id stands for this assistant: the server makes one for each graph. */
export const isOfGraph = ({
  assistant_id,
  graph_id,
}: Pick<NamedAssistant, "assistant_id" | "graph_id">): boolean =>
  assistant_id === v5(graph_id, SYSTEM_ASSISTANT_NAMESPACE);

/** A server with more of them is not known. */
const GRAPHS_AT_MOST = 1_000;

/** The ids of the graphs: each has an assistant that the server made. */
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

/** As the server says it: the types of some fields are not known yet. */
type Schemas = GraphSchema & { provisional?: true };
const POLL_MS = 1_000;

/**
 * JSON schemas of a graph's input and state. They are requested again while the server's answer is provisional.
 * @param reference the id of an assistant or a graph; undefined: nothing is requested
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

/** The nodes and edges of an assistant's graph, with those of its subgraphs. */
export const useDrawing = (assistantId: string | undefined) => {
  const { client } = useConnection();
  return useQuery({
    queryKey: ["assistants", "graph", assistantId],
    queryFn: ({ signal }) => client.assistants.getGraph(assistantId ?? "", { xray: true, signal }),
    enabled: assistantId !== undefined,
    staleTime: 60_000,
  });
};

/** In one list to choose from; more are found by their ids. */
const LISTED_AT_MOST = 500;

/** Assistants to choose from, by their names. */
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

/** An assistant in a list: one that is called as its graph is that graph. */
export const assistantText = ({ name, graph_id }: NamedAssistant): string =>
  name === graph_id ? truncate(name) : `${truncate(name) || "unnamed"} (${truncate(graph_id)})`;
