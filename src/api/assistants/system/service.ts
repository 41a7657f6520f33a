import type { Authorize } from "../../../access/authorize.ts";
import type { Caller } from "../../../access/caller.ts";
import { systemAssistantId } from "../../../platform/domain/assistant-ids.ts";
import type { Graphs } from "../../../graphs/graphs.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import { ownField } from "../../../platform/lib/names.ts";
import type { SystemAssistantRepository } from "./repository.ts";

export interface AssistantDefaults {
  config?: JsonObject | undefined;
  context?: JsonObject | undefined;
  /** Kept as the metadata `starters`. */
  starters?: readonly string[] | undefined;
}

export const createSystemAssistants = (
  authorize: Authorize,
  repository: SystemAssistantRepository,
  graphs: Pick<Graphs, "description">,
) => ({
  /**
   * Creates missing system assistants at the start. Changed defaults become a new active version; returns the graphs of
   * changed assistants.
   */
  async ensure(
    caller: Caller,
    graphIds: readonly string[],
    defaults: Readonly<Record<string, AssistantDefaults>> = {},
  ): Promise<string[]> {
    const visibility = await authorize(caller, "assistants", "create", { graph_id: "", metadata: {} });
    const assistants = graphIds.map((graphId) => {
      const { config = {}, context = {}, starters = [] } = ownField(defaults, graphId) ?? {};
      const description = graphs.description(graphId) ?? null;
      return {
        assistantId: systemAssistantId(graphId),
        graphId,
        description,
        config,
        context,
        metadata: starters.length === 0 ? {} : { starters },
      };
    });
    await repository.ensure(visibility, assistants);
    return await repository.revise(visibility, assistants);
  },
});
