import type { Authorize } from "../../access/authorize.ts";
import type { Caller } from "../../access/caller.ts";
import { systemAssistantId } from "../../domain/assistant-ids.ts";
import type { Graphs } from "../../graphs/graphs.ts";
import type { JsonObject } from "../../lib/json.ts";
import type { SystemAssistantRepository } from "./repository.ts";

export interface SystemAssistantsParts {
  authorize: Authorize;
  repository: SystemAssistantRepository;
  graphs: Pick<Graphs, "description">;
}

/** The assistants that graph ids stand for. */
export const createSystemAssistants = ({ authorize, repository, graphs }: SystemAssistantsParts) => ({
  /**
   * Once at boot: one assistant per graph, whose id clients can compute from the graph id. `configs` are what new ones
   * are made with, by graph id; answers the graphs of `configs` whose assistant was there and has another one.
   */
  async ensure(
    caller: Caller,
    graphIds: readonly string[],
    configs: Readonly<Record<string, JsonObject>> = {},
  ): Promise<string[]> {
    const configOf = (graphId: string): JsonObject =>
      (Object.hasOwn(configs, graphId) ? configs[graphId] : undefined) ?? {};
    const visibility = await authorize(caller, "assistants", "create");
    await repository.ensure(
      visibility,
      graphIds.map(systemAssistantId),
      [...graphIds],
      graphIds.map((graphId) => graphs.description(graphId) ?? null),
      graphIds.map(configOf),
    );
    const wished = graphIds.filter((graphId) => Object.hasOwn(configs, graphId));
    if (wished.length === 0) return [];
    const others = await repository.listOtherConfigs(
      visibility,
      wished.map(systemAssistantId),
      wished.map(configOf),
    );
    return wished.filter((graphId) => others.includes(systemAssistantId(graphId)));
  },
});
