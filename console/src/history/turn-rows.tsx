import { ChevronDown, ChevronRight, GitBranch } from "lucide-react";
import { useInputText } from "../parts/run-input.ts";
import { durationText, exactTime } from "../parts/time.tsx";
import { nodeNames, titleOf, type Branch, type TreeRow, type Turn } from "./tree.ts";
import styles from "./checkpoint-tree.module.css";

const branchText = ({ number, length, from }: Branch): string => {
  const size = length === 1 ? "1 checkpoint" : `${length} checkpoints`;
  if (from === undefined) return number === 1 ? "" : `Branch ${number}, a new start, ${size}`;
  if (!from.isLoaded) return number === 1 ? "" : `Branch ${number}, from an older checkpoint, ${size}`;
  return `Branch ${number}, from step ${from.step ?? "?"}, ${size}`;
};

const BranchCaption = ({ branch }: { branch: Branch | undefined }) => {
  const text = branch === undefined ? "" : branchText(branch);
  return text === "" ? null : (
    <span className={styles.branch}>
      <GitBranch aria-hidden size={12} /> {text}
    </span>
  );
};

const factsOf = ({ state, ways, wrote }: TreeRow): string[] => {
  const next = nodeNames(state.next.filter((name) => name !== "__start__"));
  const hasAsked = (state.interrupts ?? []).length > 0;
  return [
    state.next.includes("__start__") ? "a run starts" : "",
    wrote.length > 0 ? `wrote: ${nodeNames(wrote)}` : "",
    next === "" ? "" : `next: ${next}`,
    hasAsked ? (ways > 0 ? "had an interrupt" : "waits for an answer") : "",
    ways > 1 ? `${ways} branches` : "",
  ].filter((fact) => fact !== "");
};

/** From the first checkpoint of the turn to its last one; undefined if it has only one. */
const durationOf = ({ rows }: Turn): string | undefined => {
  const [last, first] = [rows[0]?.state.created_at, rows.at(-1)?.state.created_at];
  if (rows.length < 2 || last == null || first == null) return undefined;
  return durationText(Math.max(0, Date.parse(last) - Date.parse(first)));
};

export const TurnRow = ({ threadId, turn, isOpen }: { threadId: string; turn: Turn; isOpen: boolean }) => {
  const { rows, branch, runId } = turn;
  const [newest] = rows;
  const said = useInputText(threadId, runId);
  const took = durationOf(turn);
  const Icon = isOpen ? ChevronDown : ChevronRight;
  const title = said === undefined ? "…" : (said ?? "Turn of a deleted run");
  return (
    <>
      <BranchCaption branch={branch} />
      <span className={styles.line}>
        <Icon aria-hidden size={14} className={styles.fold} />
        <strong title={title}>{title}</strong>
      </span>
      <span className={styles.facts}>
        {[
          newest?.state.created_at == null ? "" : exactTime(newest.state.created_at),
          took ?? "",
          rows.length === 1 ? "1 step" : `${rows.length} steps`,
        ]
          .filter((fact) => fact !== "")
          .join(" · ")}
      </span>
    </>
  );
};

export const StepRow = ({ row, branch }: { row: TreeRow; branch: Branch | undefined }) => (
  <>
    <BranchCaption branch={branch} />
    <span className={styles.line}>
      <span data-title className={styles.step}>
        {titleOf(row.state)}
      </span>
      {row.durationMs !== undefined && <span className={styles.time}>{durationText(row.durationMs)}</span>}
    </span>
    <span className={styles.facts}>{factsOf(row).join(" · ") || "no next node"}</span>
  </>
);
