import type { RemoteExecution } from "./remote-execution.ts";
import type { GraphProcess } from "./graph-process.ts";
import type { Culprit } from "./messages.ts";

export interface Member {
  process: GraphProcess;
  /** `prepared`: waits for `load`; only with `isReloading`. */
  state: "starting" | "prepared" | "ready" | "leaving";
  readyAt: number;
  /**
   * `alone`: executes only its suspect; `successor`: replaces all regular processes once it has loaded the
   * new code.
   */
  role: "regular" | "spare" | "alone" | "successor";
  suspect: RemoteExecution | undefined;
  here: Map<number, RemoteExecution>;
  /** From the exit report. */
  culprit: Culprit | undefined;
  begun: number;
  isWorn: boolean;
}

export const newMember = (role: Member["role"]): Omit<Member, "process"> => ({
  state: "starting",
  readyAt: 0,
  role,
  suspect: undefined,
  here: new Map(),
  culprit: undefined,
  begun: 0,
  isWorn: false,
});

export const isRegular = ({ role, state }: Member): boolean => role === "regular" && state !== "leaving";
export const isSpare = ({ role, state }: Member): boolean => role === "spare" && state !== "leaving";

export const idsOf = ({ here }: Member): string[] => [...here.values()].map(({ run }) => run.run_id);

export const leastBusy = (members: Iterable<Member>): Member | undefined => {
  let best: Member | undefined;
  for (const member of members) {
    if (!isRegular(member) || member.state !== "ready" || !member.process.isResponsive) continue;
    const isBetter =
      best === undefined ||
      member.here.size < best.here.size ||
      (member.here.size === best.here.size && member.begun < best.begun);
    if (isBetter) best = member;
  }
  return best;
};
