import { createHealthTracker } from "./health-tracker.ts";
import type { RemoteExecution } from "./remote-execution.ts";
import { leastBusy, type Member } from "./member.ts";
import type { Members, MembersOptions } from "./members.ts";
import { relieve } from "./relief.ts";

/** Which process executes what: the least busy one, or one alone for a run that may take its neighbours with it. */
export const createPlacing = (
  members: Members,
  { processes, logger }: Pick<MembersOptions, "processes" | "logger">,
) => {
  /** Executions for which no process is ready, the oldest first. */
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

  /** Of a process that is ready: what it was started for, if anything. */
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

  /** Each costs a process; there are as many as suspects may have. */
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

    /** Ends those for which no process is ready: none will be, as long as the graphs can't be loaded. */
    refuseWaiting(why: string): void {
      for (const execution of waiting) execution.refused(why);
      waiting.clear();
    },

    /** The process that has it; undefined if it has none, and then it is no longer placed anywhere. */
    withdraw(execution: RemoteExecution): Member | undefined {
      const member = [...members.all].find(({ here }) => here.has(execution.id));
      if (member === undefined) waiting.delete(execution);
      return member;
    },

    /** What has ended the process goes on alone; a guess, if it has named nobody. */
    suspicion: health.died,
    /** See Doubts. */
    clears: health.clears,

    /** The process has ended before what it was started for has begun. */
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
