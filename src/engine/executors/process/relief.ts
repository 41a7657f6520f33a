import { describeError } from "./described-error.ts";
import type { Logger } from "../../../platform/lib/logger.ts";
import type { RemoteExecution } from "./remote-execution.ts";
import { idsOf, type Member } from "./member.ts";
import type { Members } from "./members.ts";

/**
 * If no process can take a waiting run, a new process replaces a silent one, which closes after its runs. At
 * most `processes` are replaced at a time.
 */
export const relieve = (members: Members, processes: number, logger: Logger): void => {
  const isUnresponsive = ({ role, process }: Member): boolean => role === "regular" && !process.isResponsive;
  const silent = [...members.all].find((member) => isUnresponsive(member) && member.state === "ready");
  const relieved = members.count((member) => isUnresponsive(member) && member.state === "leaving");
  if (silent === undefined || relieved >= processes) return;
  logger.warn(
    { graph_process: silent.process.id, runs: idsOf(silent) },
    "a graph process does not answer; another one takes its place",
  );
  members.leave(silent);
  members.startMissing();
};

/**
 * Requeues runs that a silent process has not begun. If the process reads them later, the fence rejects its
 * writes.
 */
export const takeBackAwaited = (
  members: Pick<Members, "leave">,
  member: Member,
  forget: (execution: RemoteExecution) => void,
): void => {
  const { here, process } = member;
  const awaited = [...here.values()].filter(({ isAwaited }) => isAwaited);
  for (const execution of awaited) {
    here.delete(execution.id);
    forget(execution);
    process.send({ kind: "stop", id: execution.id, reason: { kind: "lease-lost" } });
    execution.handedBack();
  }
  // No result will arrive to end this process.
  if (awaited.length > 0 && here.size === 0 && member.state === "leaving") members.leave(member);
};

const TAKEN_BACK = "The run was taken back from this process.";

/** The run may have been taken back: the process stores nothing more of it, and must not wait for ever. */
export const receiveLog = ({ here, process }: Member, id: number): void => {
  const execution = here.get(id);
  if (execution === undefined)
    process.send({ kind: "logged", id, failure: describeError(new Error(TAKEN_BACK), () => false) });
  else execution.log();
};
