import type { Logger } from "../../../platform/lib/logger.ts";
import { idsOf, leastBusy, type Member, type Members } from "./members.ts";
import type { RemoteExecution } from "./remote-execution.ts";

/** Chooses the process of each run. `processes`: the regular ones. */
export const createPlacing = (members: Members, processes: number, logger: Logger) => {
  /** Executions that wait for a regular process. */
  const waiting = new Set<RemoteExecution>();
  let isClosing = false;

  const place = (execution: RemoteExecution, member: Member): void => {
    member.here.set(execution.id, execution);
    member.begun += 1;
    execution.placeAt(member.process);
  };

  /** If no process can take a waiting run, a new process replaces a silent one, which closes after its runs. */
  const relieve = (): Member | undefined => {
    const isSilent = ({ role, process }: Member): boolean => role === "regular" && !process.isResponsive;
    const silent = [...members.all].find((member) => isSilent(member) && member.state === "ready");
    const relieved = members.count((member) => isSilent(member) && member.state === "leaving");
    if (silent === undefined || relieved >= processes) return undefined;
    logger.warn(
      { graph_process: silent.process.id, runs: idsOf(silent) },
      "a graph process does not answer; another one takes its place",
    );
    members.leave(silent);
    members.startMissing();
    return leastBusy(members.all);
  };

  const beginAlone = (member: Member): void => {
    const { only } = member;
    if (only === undefined) return;
    if (only.stopReason === undefined) place(only, member);
    else members.leave(member);
  };

  const placeWaiting = (): void => {
    for (const execution of waiting) {
      const member = leastBusy(members.all) ?? relieve();
      if (member === undefined) return;
      waiting.delete(execution);
      place(execution, member);
    }
  };

  const begin = (execution: RemoteExecution): void => {
    if (isClosing) return queueMicrotask(() => execution.lost("was not started"));
    if (execution.isAlone) {
      const member = members.takeAlone(execution);
      if (member.state === "ready") beginAlone(member);
      return members.startMissing();
    }
    waiting.add(execution);
    placeWaiting();
  };

  /** Ends waiting executions: no process gets ready while the graphs can't be loaded. */
  const endWaiting = (end: (execution: RemoteExecution) => void): void => {
    waiting.forEach(end);
    waiting.clear();
  };

  return {
    begin,
    beginAlone,
    placeWaiting,
    endWaiting,
    withdraw: (execution: RemoteExecution): void => void waiting.delete(execution),
    close(): void {
      isClosing = true;
      endWaiting((execution) => execution.lost("was not started"));
    },
  };
};
