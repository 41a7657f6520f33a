import type { AssistantGraph } from "@langchain/langgraph-sdk";

/** A node as it is drawn; ids of nodes within subgraphs begin with the ids of those: `investigate:search`. */
export interface DrawnNode {
  id: string;
  /** What stands on it. */
  name: string;
  kind: "start" | "end" | "node" | "closed";
  /** The subgraph around it; undefined in the root graph. */
  group: string | undefined;
}

/** A subgraph that is open. */
export interface DrawnGroup {
  id: string;
  name: string;
  group: string | undefined;
}

export interface DrawnEdge {
  source: string;
  target: string;
  conditional: boolean;
  label: string | undefined;
}

export interface Drawing {
  nodes: DrawnNode[];
  groups: DrawnGroup[];
  edges: DrawnEdge[];
}

/** More nodes than these nobody reads in a drawing, and laying them out would hold up the page for seconds. */
export const NODES_DRAWN_AT_MOST = 300;
const LABEL_CHARACTERS = 40;

const nameOf = (id: string): string => id.slice(id.lastIndexOf(":") + 1);
const groupOf = (id: string): string | undefined =>
  id.includes(":") ? id.slice(0, id.lastIndexOf(":")) : undefined;

const kindOf = (name: string): DrawnNode["kind"] =>
  name === "__start__" ? "start" : name === "__end__" ? "end" : "node";

/** The subgraphs around an id, the outermost first: `a` and `a:b` of `a:b:c`. */
export const groupsAround = (id: string): string[] => {
  const around: string[] = [];
  for (let end = id.indexOf(":"); end !== -1; end = id.indexOf(":", end + 1)) around.push(id.slice(0, end));
  return around;
};

/** Every subgraph of a graph. */
export const groupIdsOf = ({ nodes }: AssistantGraph): string[] => [
  ...new Set(nodes.flatMap(({ id }) => groupsAround(String(id)))),
];

/** What is drawn of a graph: each subgraph in `closed` is one node, and the edges into it end there. */
export const drawingOf = (graph: AssistantGraph, closed: ReadonlySet<string>): Drawing => {
  const shown = (id: string): string => groupsAround(id).find((group) => closed.has(group)) ?? id;
  const nodes = new Map<string, DrawnNode>();
  for (const { id } of graph.nodes) {
    const drawn = shown(String(id));
    const name = nameOf(drawn);
    nodes.set(drawn, {
      id: drawn,
      name,
      kind: drawn === String(id) ? kindOf(name) : "closed",
      group: groupOf(drawn),
    });
  }
  const edges = new Map<string, DrawnEdge>();
  for (const { source, target, conditional = false, data } of graph.edges) {
    const edge = {
      source: shown(String(source)),
      target: shown(String(target)),
      conditional,
      label: typeof data === "string" && data !== "" ? data.slice(0, LABEL_CHARACTERS) : undefined,
    };
    const isInside = edge.source === edge.target && closed.has(edge.source) && source !== target;
    if (isInside || !nodes.has(edge.source) || !nodes.has(edge.target)) continue;
    edges.set(JSON.stringify([edge.source, edge.target, edge.conditional, edge.label]), edge);
  }
  const groups = [...new Set([...nodes.keys()].flatMap(groupsAround))].map((id) => ({
    id,
    name: nameOf(id),
    group: groupOf(id),
  }));
  return { nodes: [...nodes.values()], groups, edges: [...edges.values()] };
};

/** What people call the node: without the underscores of the first and the last. */
export const labelOf = ({ kind, name }: Pick<DrawnNode, "kind" | "name">): string =>
  kind === "start" ? "start" : kind === "end" ? "end" : name;
