import type { Assistant } from "@langchain/langgraph-sdk";
import { useQuery } from "@tanstack/react-query";
import { useSearchParams } from "wouter";
import { isOfGraph } from "../parts/assistants.ts";
import { statusOf } from "../server/api-error.ts";
import { useConnection } from "../server/connection.tsx";

const ASSISTANTS_AT_MOST = 500;
const GRAPHS_AT_MOST = 1_000;

const byName = (one: Assistant, other: Assistant): number => one.name.localeCompare(other.name);

/** Graphs first, then other assistants. */
const useAssistants = () => {
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
const useAssistant = (assistantId: string | undefined) => {
  const { client } = useConnection();
  return useQuery({
    queryKey: ["assistants", "one", assistantId],
    queryFn: () => client.assistants.get(assistantId ?? ""),
    enabled: assistantId !== undefined,
  });
};

interface ChosenAssistant {
  /** Undefined while it is not known, and if the user has to choose. */
  assistant: Assistant | undefined;
  assistants: readonly Assistant[];
  isPending: boolean;
  error: unknown;
  choose(assistantId: string): void;
}

/**
 * The assistant of the address, which holds the user's choice, else that of the thread, else that of its graph. Only
 * a thread without a graph begins with the first one: another graph would spoil its state.
 * @param metadata of the thread; undefined: not yet known
 */
export const useChosenAssistant = (
  metadata: Readonly<Record<string, unknown>> | undefined,
): ChosenAssistant => {
  const [params, setParams] = useSearchParams();
  const list = useAssistants();
  const assistants = list.data ?? [];
  const named = params.get("assistant") ?? undefined;
  const { assistant_id: own, graph_id: graph } = metadata ?? {};
  const wanted = named ?? (typeof own === "string" ? own : undefined);
  const inList = assistants.find(
    ({ assistant_id, graph_id }) => wanted !== undefined && [assistant_id, graph_id].includes(wanted),
  );
  const fetched = useAssistant(list.isSuccess && inList === undefined ? wanted : undefined);
  const isDeleted = named === undefined && statusOf(fetched.error) === 404;
  const isUnnamed = metadata !== undefined && wanted === undefined;
  const ofGraph =
    typeof graph === "string"
      ? assistants.find((one) => isOfGraph(one) && one.graph_id === graph)
      : isUnnamed
        ? assistants[0]
        : undefined;
  return {
    assistant: inList ?? fetched.data ?? (isDeleted || isUnnamed ? ofGraph : undefined),
    assistants,
    isPending: list.isPending || fetched.isLoading || (metadata === undefined && named === undefined),
    error: list.error ?? (isDeleted ? undefined : fetched.error),
    choose: (assistantId) =>
      setParams(
        (before) => {
          before.set("assistant", assistantId);
          return before;
        },
        { replace: true },
      ),
  };
};
