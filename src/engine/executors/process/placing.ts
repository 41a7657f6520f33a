import { createHealthTracker } from "./health-tracker.ts";
import type { RemoteExecution } from "./remote-execution.ts";
import { leastBusy, type Member } from "./member.ts";
import type { Members, MembersOptions } from "./members.ts";
import { relieve } from "./relief.ts";

export const createPlacing = (
  members: Members,
  { processes, logger }: Pick<MembersOptions, "processes" | "logger">,
) => {
  const waiting = new Set<RemoteExecution>();
  const health = createHealthTracker();
  let isClosing = false;

  const place = (execution: RemoteExecution, member: Member): void => {
    waiting.delete(execution);
    const hasNeighbours = member.here.size > 0;
    member.here.set(execution.id, execution);
    member.begun += 1;
    execution.placeAt(member.process, hasNeighbours);
  };

  const placeWaiting = (): void => {
    for (const execution of waiting) {
      let member = leastBusy(members.all);
      if (member === undefined) {
        relieve(members, processes, logger);
        member = leastBusy(members.all);
      }
      if (member === undefined) return;
      place(execution, member);
    }
  };

  const beginSuspect = (member: Member): void => {
    const { suspect } = member;
    if (suspect === undefined) return;
    if (suspect.stopReason === undefined) place(suspect, member);
    else members.leave(member);
  };

  const beginAlone = (execution: RemoteExecution): void => {
    if (isClosing || execution.stopReason !== undefined) return execution.lost("was not started");
    const member = members.takeAlone(execution);
    if (member.state === "ready") beginSuspect(member);
    members.startMissing();
  };

  const goesAlone = ({ isSuspect, run }: RemoteExecution): boolean =>
    (health.take(run.run_id) && members.count(({ role }) => role === "alone") < processes) || isSuspect;

  return {
    placeWaiting,
    beginSuspect,

    begin(execution: RemoteExecution): void {
      if (isClosing) return queueMicrotask(() => execution.lost("was not started"));
      if (goesAlone(execution)) return beginAlone(execution);
      waiting.add(execution);
      placeWaiting();
    },

    /** Ends waiting executions: no process gets ready while the graphs can't be loaded. */
    refuseWaiting(why: string): void {
      for (const execution of waiting) execution.refused(why);
      waiting.clear();
    },

    withdraw(execution: RemoteExecution): Member | undefined {
      const member = [...members.all].find(({ here }) => here.has(execution.id));
      if (member === undefined) waiting.delete(execution);
      return member;
    },

    suspicion: health.died,
    clears: health.clears,

    beginAgain({ suspect }: Member, pauseMs: number): void {
      if (suspect === undefined || suspect.isPlaced || suspect.stopReason !== undefined) return;
      setTimeout(() => beginAlone(suspect), pauseMs);
    },

    close(): void {
      isClosing = true;
      for (const execution of waiting) execution.lost("was not started");
    },
  };
};
