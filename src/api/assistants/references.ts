import type { Visibility } from "../../access/visibility.ts";
import type { AssistantRow } from "../../platform/database/tables.ts";
import { assistantIdOf, systemAssistantId } from "../../platform/domain/assistant-ids.ts";
import { assistantNotFound, graphNotFound } from "../../platform/domain/errors.ts";
import type { Graphs } from "../../graphs/graphs.ts";
import type { AssistantRepository } from "./repository.ts";

/** A reference is an assistant's id, or a graph id for the graph's system assistant. */
export const createReferences = (
  repository: Pick<AssistantRepository, "find">,
  graphs: Pick<Graphs, "ids" | "has">,
) => ({
  async find(visibility: Visibility<"assistants">, reference: string): Promise<AssistantRow> {
    const row = await repository.find(visibility, assistantIdOf(reference));
    if (row === undefined) throw assistantNotFound(reference);
    return row;
  },

  assertDeployed(graphId: string): void {
    if (!graphs.has(graphId)) throw graphNotFound(graphId);
  },

  graphStandingFor: (assistantId: string): string | undefined =>
    graphs.ids.find((graphId) => systemAssistantId(graphId) === assistantId.toLowerCase()),
});

export type References = ReturnType<typeof createReferences>;
