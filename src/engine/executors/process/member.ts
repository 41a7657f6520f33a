import type { ExecutionThere } from "./execution-there.ts";
import type { GraphProcess } from "./graph-process.ts";

/** One process of the pool. */
export interface Member {
  process: GraphProcess;
  state: "starting" | "ready" | "leaving";
  readyAt: number;
  /** `spare`: takes the place of another one; `alone`: executes its suspect and nothing else. */
  role: "regular" | "spare" | "alone";
  suspect: ExecutionThere | undefined;
  here: Map<number, ExecutionThere>;
  begun: number;
  isWorn: boolean;
}

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
