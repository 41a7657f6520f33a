import type { Logger } from "../../../platform/lib/logger.ts";
import { idsOf, type Member } from "./member.ts";
import type { Culprit } from "./messages.ts";

/** While no process gets ready. Tries come every few seconds then, as when the database is away: the log has said why. */
const LOG_AGAIN_MS = 60_000;

const culpritFields = ({ run_id, thread_id, graph_id, node }: Culprit) => ({
  run_id,
  thread_id,
  graph_id,
  node,
});

/**
 * Tells the log how graph processes end. Starts that fail one after the other are told once, and then now and again; in
 * development once, since the person who reads it is about to change what is wrong.
 */
export const createExitLog = (logger: Logger, { isDevelopment = false } = {}) => {
  let failed = 0;
  let loggedAt = -Infinity;
  const isLogged = (): boolean =>
    failed > 0 && (isDevelopment || performance.now() - loggedAt < LOG_AGAIN_MS);
  return {
    /** Whether it is told that processes do not start: what the next one prints before it is ready says the same. */
    isLogged,
    ended(member: Member, how: string, cause: unknown): void {
      const { culprit } = member;
      const fields = {
        graph_process: member.process.id,
        runs: idsOf(member),
        ...(culprit === undefined ? {} : { culprit: culpritFields(culprit) }),
        err: cause,
      };
      if (member.state !== "starting") {
        const why = culprit === undefined ? "" : `: a run ${culprit.how}`;
        return logger.error(fields, `a graph process ${how}${why}`);
      }
      const isKnown = isLogged();
      failed += 1;
      if (isKnown) {
        return logger.debug(fields, `a graph process ${how} before it was ready`);
      }
      loggedAt = performance.now();
      logger.error(
        { ...fields, failed_starts: failed },
        `a graph process ${how} before it was ready; it is tried again`,
      );
    },
    /** One is ready: whatever was in the way is over. */
    started(): void {
      if (failed > 1) logger.info({ failed_starts: failed }, "graph processes start again");
      failed = 0;
      loggedAt = -Infinity;
    },
  };
};
