import type { Authorize } from "../../../access/authorize.ts";
import type { Caller } from "../../../access/caller.ts";
import type { GraphDrawing } from "../../../graphs/drawing.ts";
import type { Graphs } from "../../../graphs/graphs.ts";
import type { GraphSchemas } from "../../../graphs/json-schemas.ts";
import { assistantIdOf } from "../../../platform/domain/assistant-ids.ts";
import type { References } from "../references.ts";

export const createGraphService = (
  authorize: Authorize,
  references: References,
  graphs: Pick<Graphs, "describe" | "drawing" | "subgraphs">,
) => {
  const findDeployed = async (caller: Caller, reference: string) => {
    const visibility = await authorize(caller, "assistants", "read", {
      assistant_id: assistantIdOf(reference),
    });
    const { graph_id, config, context } = await references.find(visibility, reference);
    references.assertDeployed(graph_id);
    return { graphId: graph_id, configuration: { ...config, context } };
  };

  const describe = async (caller: Caller, reference: string) => {
    const { graphId, configuration } = await findDeployed(caller, reference);
    return await graphs.describe(graphId, configuration);
  };

  return {
    /** `xray`: true draws all subgraphs; a number draws that many levels. */
    async drawing(caller: Caller, reference: string, xray: boolean | number): Promise<GraphDrawing> {
      const { graphId, configuration } = await findDeployed(caller, reference);
      return await graphs.drawing(graphId, xray, configuration);
    },

    async schemas(caller: Caller, reference: string): Promise<GraphSchemas> {
      return (await describe(caller, reference)).schemas;
    },

    describe,

    /** Empty for an unknown namespace. */
    async subgraphs(
      caller: Caller,
      reference: string,
      namespace: string | undefined,
      recurse: boolean,
    ): Promise<Record<string, GraphSchemas>> {
      const { graphId, configuration } = await findDeployed(caller, reference);
      return await graphs.subgraphs(graphId, namespace, recurse, configuration);
    },
  };
};

export type GraphService = ReturnType<typeof createGraphService>;
