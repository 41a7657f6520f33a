import { lazy, Suspense, useId } from "react";
import type { ThreadState } from "@langchain/langgraph-sdk";
import type { CheckpointRef } from "../parts/checkpoints.ts";
import { Empty, ErrorNotice } from "../parts/notice.tsx";
import { exactTime } from "../parts/time.tsx";
import { titleOf, type TreeRow } from "./tree.ts";
import { useCheckpoint } from "./use-checkpoint.ts";

const Difference = lazy(async () => ({
  default: (await import("../parts/difference/difference.tsx")).Difference,
}));

/** Older checkpoints can be marked in the tree. */
const OFFERED = 200;

const optionText = ({ id, state }: TreeRow): string =>
  `${titleOf(state)}, …${id.slice(9, 18)}, ${exactTime(state.created_at ?? "")}`;

interface ComparisonProps {
  threadId: string;
  state: ThreadState<Record<string, unknown>>;
  checkpointRef: CheckpointRef;
  rows: readonly TreeRow[];
  compared: string | undefined;
  onCompare(id: string | undefined): void;
}

export const Comparison = ({
  threadId,
  state,
  checkpointRef,
  rows,
  compared,
  onCompare,
}: ComparisonProps) => {
  const id = useId();
  const before = state.parent_checkpoint?.checkpoint_id ?? undefined;
  const other = compared === checkpointRef.checkpoint_id ? undefined : (compared ?? before);
  const first = useCheckpoint(
    threadId,
    other === undefined ? undefined : { checkpoint_id: other, checkpoint_ns: checkpointRef.checkpoint_ns },
  );
  const offered = rows.filter((row) => row.id !== checkpointRef.checkpoint_id).slice(0, OFFERED);
  const isOffered = compared === undefined || offered.some((row) => row.id === compared);
  return (
    <>
      <div className="row">
        <label htmlFor={id}>Compared with</label>
        <select
          id={id}
          value={compared ?? ""}
          onChange={({ target }) => onCompare(target.value === "" ? undefined : target.value)}
        >
          <option value="">the previous checkpoint</option>
          {!isOffered && (
            <option value={compared}>
              {compared === checkpointRef.checkpoint_id ? "itself" : `…${compared.slice(9, 18)}`}
            </option>
          )}
          {offered.map((row) => (
            <option key={row.id} value={row.id}>
              {optionText(row)}
            </option>
          ))}
        </select>
        {compared !== checkpointRef.checkpoint_id && (
          <button type="button" onClick={() => onCompare(checkpointRef.checkpoint_id)}>
            Compare others with this checkpoint
          </button>
        )}
      </div>
      <ErrorNotice error={first.error} onRetry={() => void first.refetch()} />
      {other === undefined ? (
        <Empty>
          {compared === undefined
            ? "There is no previous checkpoint."
            : "Select another checkpoint in the list to compare it."}
        </Empty>
      ) : (
        first.data !== undefined && (
          <Suspense fallback={<p className="faint">Loading…</p>}>
            <Difference key={other} before={first.data.values} after={state.values} />
          </Suspense>
        )
      )}
    </>
  );
};
