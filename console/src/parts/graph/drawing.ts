import type { AssistantGraph } from "@langchain/langgraph-sdk";

/** The id of a nested node begins with its subgraph: `investigate:search`. */
export interface DrawnNode {
  id: string;
  name: string;
  kind: "start" | "end" | "node" | "closed";
  /** The parent subgraph; undefined in the root graph. */
  group: string | undefined;
}

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

/** The layout of more nodes would block the page for seconds. */
export const NODES_DRAWN_AT_MOST = 300;
const LABEL_CHARACTERS = 40;

const nameOf = (id: string): string => id.slice(id.lastIndexOf(":") + 1);
const groupOf = (id: string): string | undefined =>
  id.includes(":") ? id.slice(0, id.lastIndexOf(":")) : undefined;

const kindOf = (name: string): DrawnNode["kind"] =>
  name === "__start__" ? "start" : name === "__end__" ? "end" : "node";

/** Outermost first: `a` and `a:b` of `a:b:c`. */
export const groupsAround = (id: string): string[] => {
  const around: string[] = [];
  for (let end = id.indexOf(":"); end !== -1; end = id.indexOf(":", end + 1)) around.push(id.slice(0, end));
  return around;
};

export const groupIdsOf = ({ nodes }: AssistantGraph): string[] => [
  ...new Set(nodes.flatMap(({ id }) => groupsAround(String(id)))),
];

/** A closed subgraph becomes one node with all its edges. */
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

export const labelOf = ({ kind, name }: Pick<DrawnNode, "kind" | "name">): string =>
  kind === "start" ? "start" : kind === "end" ? "end" : name;
