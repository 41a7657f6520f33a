import type { BegunRun } from "../../../engine/events/turns.ts";
import type { EndedRow } from "../repository.ts";
import type { EndedRun, Interrupt } from "./ends.ts";

const interruptsOf = (sent: string | undefined, { waiting }: EndedRow): Interrupt[] | undefined => {
  if (sent !== undefined) return JSON.parse(sent) as Interrupt[];
  return waiting === null ? undefined : (Object.values(waiting).flat() as Interrupt[]);
};

/** `sent`: the interrupts that the run sent on this wire, as JSON; else the thread's interrupts count. */
export const endedRun = (
  { runId, graphId, turn }: BegunRun,
  row: EndedRow | undefined,
  sent?: string,
): EndedRun => {
  if (row === undefined) {
    return { runId, graphId, turn, status: "gone", error: null, endedAt: Date.now(), interrupts: undefined };
  }
  const { status, error, endedAt } = row;
  if (status === "pending" || status === "running") throw new Error(`Run ${runId} has not ended.`);
  return {
    runId,
    graphId,
    turn: row.turn,
    status,
    error,
    endedAt: Math.round(endedAt),
    interrupts: interruptsOf(sent, row),
  };
};
