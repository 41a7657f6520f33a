import { labelOf, type DrawnEdge, type Drawing } from "./drawing.ts";

/** In pixels from the top left corner of the drawing. */
export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export interface LaidOutEdge extends DrawnEdge {
  path: string;
  labelAt: Point | undefined;
}

export interface Layout {
  width: number;
  height: number;
  nodes: ReadonlyMap<string, Box>;
  groups: ReadonlyMap<string, Box>;
  edges: readonly LaidOutEdge[];
}

interface Point {
  x: number;
  y: number;
}

const CHARACTER_WIDTH = 8.2;
const LABEL_CHARACTER_WIDTH = 6.6;
const NODE_WIDTH_AT_LEAST = 96;
const NODE_WIDTH_AT_MOST = 260;
const PADDING = 36;
const NODE_HEIGHT = 40;
const ACTIVE_NODE_HEIGHT = 60;
const ACTIVE_NODE_WIDTH_AT_LEAST = 172;
const GROUP_TITLE_HEIGHT = 30;
const MARGIN = 24;

const middle = (a: Point, b: Point): Point => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 });
const text = ({ x, y }: Point): string => `${Math.round(x * 10) / 10},${Math.round(y * 10) / 10}`;

const pathThrough = (points: readonly Point[]): string => {
  const [first, ...others] = points;
  const last = others.pop();
  if (first === undefined || last === undefined) return "";
  const curves = others.map(
    (point, index) => `Q${text(point)} ${text(middle(point, others[index + 1] ?? last))}`,
  );
  return `M${text(first)} ${curves.join(" ")} L${text(last)}`;
};

const boxOf = ({ x, y, width, height }: Box): Box => ({ x: x - width / 2, y: y - height / 2, width, height });

export const layOut = async (drawing: Drawing, withActivity: boolean): Promise<Layout> => {
  const { Graph, layout } = await import("@dagrejs/dagre");
  const graph = new Graph({ compound: true, multigraph: true });
  graph.setGraph({ rankdir: "TB", nodesep: 36, ranksep: 52, edgesep: 18, marginx: MARGIN, marginy: MARGIN });
  for (const node of drawing.nodes) {
    const { id, kind } = node;
    const name = labelOf(node);
    const isPlain = kind === "start" || kind === "end";
    const atLeast = isPlain ? 0 : withActivity ? ACTIVE_NODE_WIDTH_AT_LEAST : NODE_WIDTH_AT_LEAST;
    graph.setNode(id, {
      width: Math.min(NODE_WIDTH_AT_MOST, Math.max(atLeast, name.length * CHARACTER_WIDTH + PADDING)),
      height: isPlain ? 30 : withActivity ? ACTIVE_NODE_HEIGHT : NODE_HEIGHT,
    });
  }
  for (const { id } of drawing.groups) graph.setNode(id, {});
  for (const { id, group } of [...drawing.nodes, ...drawing.groups]) {
    if (group !== undefined) graph.setParent(id, group);
  }
  drawing.edges.forEach(({ source, target, label }, index) => {
    const size =
      label === undefined
        ? {}
        : { width: label.length * LABEL_CHARACTER_WIDTH + 8, height: 18, labelpos: "c" };
    graph.setEdge(source, target, { ...size }, String(index));
  });
  layout(graph);

  const boxes = (ids: readonly { id: string }[]): Map<string, Box> =>
    new Map(ids.map(({ id }) => [id, boxOf(graph.node(id) as Box)]));
  const groups = boxes(drawing.groups);
  for (const [id, box] of groups) {
    groups.set(id, { ...box, y: box.y - GROUP_TITLE_HEIGHT, height: box.height + GROUP_TITLE_HEIGHT });
  }
  const edges = drawing.edges.map((edge, index): LaidOutEdge => {
    const {
      points = [],
      x,
      y,
    } = graph.edge(edge.source, edge.target, String(index)) as {
      points?: Point[];
      x?: number;
      y?: number;
    };
    return {
      ...edge,
      path: pathThrough(points),
      labelAt: x === undefined || y === undefined ? undefined : { x, y },
    };
  });
  const { width = 0, height = 0 } = graph.graph() as { width?: number; height?: number };
  return { width, height, nodes: boxes(drawing.nodes), groups, edges };
};
