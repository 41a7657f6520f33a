import type { RemoteExecution } from "./remote-execution.ts";
import type { GraphProcess } from "./graph-process.ts";
import type { Culprit } from "./messages.ts";

/** One process of the pool. */
export interface Member {
  process: GraphProcess;
  /** `prepared`: has yet to be told to load its graphs; only where these are loaded anew. */
  state: "starting" | "prepared" | "ready" | "leaving";
  readyAt: number;
  /**
   * `spare`: takes the place of another one; `alone`: executes its suspect and nothing else; `successor`: takes the place of all
   * regular ones as soon as it has loaded their new code.
   */
  role: "regular" | "spare" | "alone" | "successor";
  suspect: RemoteExecution | undefined;
  here: Map<number, RemoteExecution>;
  /** What has ended the process, if it said so before it ended. */
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

/** Who has the fewest runs; among those, who has begun the fewest. Undefined if none can take one now. */
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
