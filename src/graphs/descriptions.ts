import { graphSchemas, isDeclaredByTypes, type GraphSchemas } from "./json-schemas.ts";
import type { RunnableGraph } from "./runnable-graph.ts";
import type { GraphSourceSchemas, SourceReader } from "./source/source-schemas.ts";

export interface GraphDescription {
  schemas: GraphSchemas;
  /** See `outputKeysOf`. */
  outputKeys: readonly string[] | undefined;
}

export const NO_SOURCE: GraphSourceSchemas = new Map();

/** What callers learn of graphs. */
export const createDescriptions = (source: SourceReader | undefined) => {
  const kept = new Map<string, GraphSchemas>();

  /** Undefined while unknown. */
  const sourceOf = async (id: string): Promise<GraphSourceSchemas | undefined> =>
    source === undefined ? NO_SOURCE : await source.of(id);

  const marked = (schemas: GraphSchemas, fromSource: GraphSourceSchemas | undefined): GraphSchemas =>
    fromSource === undefined && source?.isReading === true ? { ...schemas, provisional: true } : schemas;

  return {
    sourceOf,
    marked,

    /** `isKept`: the answer is the same each time. */
    async schemasOf(
      id: string,
      graph: RunnableGraph,
      { isKept }: { isKept: boolean },
    ): Promise<GraphSchemas> {
      const known = kept.get(id);
      if (known) return known;
      const fromSource = isDeclaredByTypes(graph) ? await sourceOf(id) : NO_SOURCE;
      const schemas = marked(graphSchemas(id, graph, fromSource?.get("")), fromSource);
      if (isKept && fromSource !== undefined) kept.set(id, schemas);
      return schemas;
    },
  };
};
