import type { Activity } from "./activity.ts";
import { labelOf, type DrawnEdge, type DrawnNode, type Drawing } from "./drawing.ts";
import { activityText } from "./node-button.tsx";
import styles from "./graph-view.module.css";

const NODES_LISTED_AT_MOST = 500;
const EDGES_LISTED_AT_MOST = 30;

const placeOf = ({ id }: DrawnNode): string => id.replaceAll(":", " › ");

const edgeText = ({ conditional, label }: DrawnEdge, target: DrawnNode | undefined): string => {
  const name = target === undefined ? "" : target.group === undefined ? labelOf(target) : placeOf(target);
  const how = [conditional && "if chosen", label].filter(Boolean).join(": ");
  return how === "" ? name : `${name} (${how})`;
};

/** For screen readers and large graphs. */
export const GraphText = ({
  drawing: { nodes, edges },
  activity,
  onSelect,
}: {
  drawing: Drawing;
  activity: ReadonlyMap<string, Activity> | undefined;
  onSelect(id: string): void;
}) => {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const next = new Map<string, DrawnEdge[]>();
  for (const edge of edges) next.set(edge.source, [...(next.get(edge.source) ?? []), edge]);
  return (
    <ul>
      {nodes.slice(0, NODES_LISTED_AT_MOST).map((node) => {
        const onward = next.get(node.id) ?? [];
        const activityWords = activityText(activity?.get(node.id));
        return (
          <li key={node.id}>
            {node.kind === "start" || node.kind === "end" ? (
              labelOf(node)
            ) : (
              <button type="button" className={styles.listed} onClick={() => onSelect(node.id)}>
                {placeOf(node)}
              </button>
            )}
            {node.kind === "closed" && " (a subgraph)"}
            {activityWords !== "" && ` (${activityWords})`}
            {onward.length > 0 && " leads to "}
            {onward
              .slice(0, EDGES_LISTED_AT_MOST)
              .map((edge) => edgeText(edge, byId.get(edge.target)))
              .join(", ")}
            {onward.length > EDGES_LISTED_AT_MOST && `, and ${onward.length - EDGES_LISTED_AT_MOST} more`}
          </li>
        );
      })}
      {nodes.length > NODES_LISTED_AT_MOST && (
        <li className="faint">and {nodes.length - NODES_LISTED_AT_MOST} more nodes</li>
      )}
    </ul>
  );
};
