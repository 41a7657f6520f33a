import type { Logger } from "../../../platform/lib/logger.ts";
import type { RemoteExecution } from "./remote-execution.ts";
import { idsOf, type Member } from "./member.ts";
import type { Members } from "./members.ts";

/**
 * No process answers, and a run waits: another process takes the place of one that does not. Its runs stay there, and it ends
 * with them. As many may be so at a time as there are to be processes.
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
 * The runs that a silent process has not begun go back to the queue, and on in another process. The process may read them yet:
 * the fence of their next attempt keeps it from writing, and `stop` follows.
 * @param forget called with each
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
  // No result will come that would end it.
  if (awaited.length > 0 && here.size === 0 && member.state === "leaving") members.leave(member);
};

/** The process asks for the log of a run that may have been taken back: its flush there must not wait for ever. */
export const receiveLog = ({ here, process }: Member, id: number): void => {
  const execution = here.get(id);
  if (execution === undefined) process.send({ kind: "logged", id });
  else execution.log();
};
