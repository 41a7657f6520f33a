import { durationText } from "../time.tsx";
import type { Activity, Outcome } from "./activity.ts";
import type { DrawnNode } from "./drawing.ts";
import styles from "./canvas.module.css";

const ERROR_CHARACTERS = 500;

const WORDS: ReadonlyMap<Outcome, string> = new Map([
  ["failed", "failed"],
  ["waiting", "waiting"],
  ["stopped", "not finished"],
]);

/** E.g. `running`, `failed · 2 times`, `3 times, 1.2 s each`. */
export const activityText = (activity: Activity | undefined): string => {
  if (activity === undefined) return "";
  const { count, running, averageMs, last } = activity;
  const times = count === 1 ? "once" : `${count} times`;
  const took = averageMs === undefined ? "" : `, ${durationText(averageMs)}${count > 1 ? " each" : ""}`;
  if (running > 0) return running === 1 ? "running" : `running ${running} times`;
  const word = last === undefined ? undefined : WORDS.get(last);
  return word === undefined ? `${times}${took}` : `${word} · ${times}`;
};

const stateOf = (activity: Activity | undefined): string | undefined =>
  activity === undefined ? undefined : activity.running > 0 ? "running" : activity.last;

interface NodeButtonProps {
  node: DrawnNode;
  activity: Activity | undefined;
  withActivity: boolean;
  /** Whether the activity is not read yet. */
  isLoading: boolean;
  isSelected: boolean;
  onSelect(id: string): void;
}

export const NodeButton = ({
  node: { id, name, kind },
  activity,
  withActivity,
  isLoading,
  isSelected,
  onSelect,
}: NodeButtonProps) => (
  <button
    type="button"
    className={kind === "closed" ? `${styles.node} ${styles.closed}` : styles.node}
    aria-pressed={isSelected}
    title={activity?.error === undefined ? id : `${id}: ${activity.error.slice(0, ERROR_CHARACTERS)}`}
    data-node={id}
    data-state={stateOf(activity)}
    onClick={() => onSelect(id)}
  >
    <span className={styles.nodeName}>{name}</span>
    {withActivity && (
      <span className={styles.nodeActivity}>
        {activityText(activity) || (isLoading ? "\u00a0" : "has not run")}
      </span>
    )}
  </button>
);
