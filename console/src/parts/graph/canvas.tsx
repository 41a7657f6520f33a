import { useEffect, useId, useRef, useState, type PointerEvent } from "react";
import type { Activity } from "./activity.ts";
import { labelOf, type DrawnGroup, type DrawnNode, type Drawing } from "./drawing.ts";
import type { Box, LaidOutEdge, Layout } from "./layout.ts";
import { NodeButton } from "./node-button.tsx";
import styles from "./canvas.module.css";

const TOOLS_HEIGHT = 40;
const ZOOM_STEP = 1.25;
const ZOOM_AT_LEAST = 0.2;
const ZOOM_AT_MOST = 2.5;

const bounded = (zoom: number): number => Math.min(ZOOM_AT_MOST, Math.max(ZOOM_AT_LEAST, zoom));

interface CanvasProps {
  drawing: Drawing;
  layout: Layout;
  activity: ReadonlyMap<string, Activity> | undefined;
  /** Whether `activity` is not read yet. */
  isLoading: boolean;
  selected: string | undefined;
  onSelect(id: string): void;
  onToggle(group: string): void;
}

const useZoom = ({ width, height }: Layout) => {
  const frame = useRef<HTMLDivElement>(null);
  const [zoom, setZoom] = useState<number>();
  const [fitting, setFitting] = useState(1);
  useEffect(() => {
    const element = frame.current;
    if (element === null) return;
    const observer = new ResizeObserver(() => {
      const { clientWidth, clientHeight } = element;
      setFitting(bounded(Math.min(1, clientWidth / width, clientHeight / height)));
    });
    observer.observe(element);
    return () => observer.disconnect();
  }, [width, height]);
  const shown = zoom ?? fitting;
  return {
    frame,
    zoom: shown,
    change: (factor: number) => setZoom(bounded(shown * factor)),
    fit: () => setZoom(undefined),
    isFitting: zoom === undefined,
  };
};

/** Only for the mouse, because touch scrolls already. */
const useDragging = () => {
  const from = useRef<{ x: number; y: number }>(undefined);
  return {
    onPointerDown: ({ pointerType, target, clientX, clientY }: PointerEvent<HTMLElement>) => {
      if (pointerType === "mouse" && !(target as Element).closest("button"))
        from.current = { x: clientX, y: clientY };
    },
    onPointerMove: ({ currentTarget, clientX, clientY, buttons }: PointerEvent<HTMLElement>) => {
      if (buttons === 0) from.current = undefined;
      if (from.current === undefined) return;
      currentTarget.scrollBy(from.current.x - clientX, from.current.y - clientY);
      from.current = { x: clientX, y: clientY };
    },
    onPointerUp: () => {
      from.current = undefined;
    },
  };
};

const Edges = ({ layout, lit }: { layout: Layout; lit: ReadonlySet<string> }) => {
  const id = useId();
  const classOf = ({ source, target, conditional }: LaidOutEdge): string =>
    [styles.edge, conditional && styles.conditional, (lit.has(source) || lit.has(target)) && styles.lit]
      .filter(Boolean)
      .join(" ");
  return (
    <svg className={styles.edges} width={layout.width} height={layout.height} aria-hidden="true">
      <defs>
        <marker
          id={id}
          viewBox="0 0 8 8"
          refX="7"
          refY="4"
          markerWidth="8"
          markerHeight="8"
          orient="auto-start-reverse"
        >
          <path d="M0,0.5 L8,4 L0,7.5 z" className={styles.arrow} />
        </marker>
      </defs>
      {layout.edges.map((edge, index) => (
        <g key={index} className={classOf(edge)}>
          <path d={edge.path} markerEnd={`url(#${id})`} />
          {edge.label !== undefined && edge.labelAt !== undefined && (
            <text x={edge.labelAt.x} y={edge.labelAt.y} textAnchor="middle" dominantBaseline="central">
              {edge.label}
            </text>
          )}
        </g>
      ))}
    </svg>
  );
};

const placed = ({ x, y, width, height }: Box) => ({ left: x, top: y, width, height });

const Group = ({
  group: { id, name },
  box,
  running,
  isSelected,
  onSelect,
  onToggle,
}: {
  group: DrawnGroup;
  box: Box;
  running: boolean;
  isSelected: boolean;
  onSelect(id: string): void;
  onToggle(id: string): void;
}) => (
  <div className={styles.group} style={placed(box)} data-running={running || undefined}>
    <button
      type="button"
      className={styles.groupName}
      aria-pressed={isSelected}
      data-node={id}
      onClick={() => onSelect(id)}
    >
      {name}
    </button>
    <button
      type="button"
      className={styles.toggle}
      aria-expanded="true"
      aria-label={`Subgraph ${name}: close`}
      onClick={() => onToggle(id)}
    >
      −
    </button>
  </div>
);

const byPlace = (layout: Layout) => (a: { id: string }, b: { id: string }) => {
  const first = layout.nodes.get(a.id) ?? layout.groups.get(a.id);
  const second = layout.nodes.get(b.id) ?? layout.groups.get(b.id);
  if (first === undefined || second === undefined) return 0;
  return first.y - second.y || first.x - second.x;
};

/** In reading order. */
type Item = { kind: "group"; group: DrawnGroup } | { kind: "node"; node: DrawnNode };
const itemsOf = ({ nodes, groups }: Drawing, layout: Layout): Item[] => {
  const compare = byPlace(layout);
  const items: [{ id: string }, Item][] = [
    ...groups.map((group): [{ id: string }, Item] => [group, { kind: "group", group }]),
    ...nodes.map((node): [{ id: string }, Item] => [node, { kind: "node", node }]),
  ];
  return items.sort(([a], [b]) => compare(a, b)).map(([, item]) => item);
};

export const Canvas = (props: CanvasProps) => {
  const { drawing, layout, activity, isLoading, selected, onSelect, onToggle } = props;
  const { frame, zoom, change, fit, isFitting } = useZoom(layout);
  const dragging = useDragging();
  const isRunning = (id: string): boolean => (activity?.get(id)?.running ?? 0) > 0;
  const lit = new Set(drawing.nodes.map(({ id }) => id).filter(isRunning));
  return (
    <div className={styles.canvas}>
      <div className={styles.tools} role="group" aria-label="Zoom">
        <button type="button" aria-label="Zoom out" onClick={() => change(1 / ZOOM_STEP)}>
          −
        </button>
        <output className={styles.zoom}>{Math.round(zoom * 100)} %</output>
        <button type="button" aria-label="Zoom in" onClick={() => change(ZOOM_STEP)}>
          +
        </button>
        <button type="button" onClick={fit} disabled={isFitting}>
          Fit
        </button>
      </div>
      <div
        ref={frame}
        className={styles.frame}
        role="region"
        aria-label="Drawing of the graph"
        tabIndex={0}
        // Room for the buttons above a small drawing.
        style={{ maxHeight: layout.height + 2 * TOOLS_HEIGHT }}
        {...dragging}
      >
        <div className={styles.sheet} style={{ width: layout.width * zoom, height: layout.height * zoom }}>
          <div
            className={styles.paper}
            style={{ width: layout.width, height: layout.height, transform: `scale(${zoom})` }}
          >
            <Edges layout={layout} lit={lit} />
            {itemsOf(drawing, layout).map((item) => {
              if (item.kind === "group") {
                const { group } = item;
                const box = layout.groups.get(group.id);
                return (
                  box && (
                    <Group
                      key={`group ${group.id}`}
                      group={group}
                      box={box}
                      running={isRunning(group.id)}
                      isSelected={selected === group.id}
                      onSelect={onSelect}
                      onToggle={onToggle}
                    />
                  )
                );
              }
              const { node } = item;
              const box = layout.nodes.get(node.id);
              if (box === undefined) return null;
              if (node.kind === "start" || node.kind === "end")
                return (
                  <span key={node.id} className={styles.terminal} style={placed(box)}>
                    {labelOf(node)}
                  </span>
                );
              return (
                <div key={node.id} className={styles.place} style={placed(box)}>
                  <NodeButton
                    node={node}
                    activity={activity?.get(node.id)}
                    withActivity={activity !== undefined}
                    isLoading={isLoading}
                    isSelected={selected === node.id}
                    onSelect={onSelect}
                  />
                  {node.kind === "closed" && (
                    <button
                      type="button"
                      className={styles.toggle}
                      aria-expanded="false"
                      aria-label={`Subgraph ${node.name}: open`}
                      onClick={() => onToggle(node.id)}
                    >
                      +
                    </button>
                  )}
                </div>
              );
            })}
          </div>
        </div>
      </div>
    </div>
  );
};
