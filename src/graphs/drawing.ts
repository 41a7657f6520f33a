import type { JsonObject, JsonValue } from "../platform/lib/json.ts";
import { ownField } from "../platform/lib/names.ts";
import { isEmpty } from "./configuration.ts";
import type { RunnableGraph } from "./runnable-graph.ts";

interface DrawnNode {
  id: string;
  type?: string;
  data?: JsonValue;
  metadata?: JsonObject;
}

/** No other keys: the Python SDK's edge takes exactly these and fails on a fifth. */
interface DrawnEdge {
  source: string;
  target: string;
  data?: JsonValue;
  conditional?: boolean;
}

export interface GraphDrawing {
  nodes: DrawnNode[];
  edges: DrawnEdge[];
}

/** @param xray `true` opens all subgraphs, a number that many levels */
export async function drawGraph(graph: RunnableGraph, xray: boolean | number): Promise<GraphDrawing> {
  const drawable = await graph.getGraphAsync({ xray: xray === 0 ? false : xray });
  const { nodes, edges } = drawable.toJSON();
  const drawing = {
    nodes: nodes.map(({ id, type, data }) => {
      const metadata = ownField(drawable.nodes, String(id))?.metadata ?? {};
      return { id: String(id), type, data, metadata: isEmpty(metadata) ? undefined : metadata };
    }),
    edges: edges.map(({ source, target, data, conditional }) => ({
      source: String(source),
      target: String(target),
      data,
      conditional,
    })),
  };
  // Node data may hold values that are no JSON.
  return JSON.parse(JSON.stringify(drawing)) as GraphDrawing;
}
