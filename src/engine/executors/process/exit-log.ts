import type { Logger } from "../../../platform/lib/logger.ts";
import { idsOf, type Member } from "./member.ts";
import type { Culprit } from "./messages.ts";

const LOG_AGAIN_MS = 60_000;

const culpritFields = ({ run_id, thread_id, graph_id, node }: Culprit) => ({
  run_id,
  thread_id,
  graph_id,
  node,
});

export const createExitLog = (logger: Logger, { isDevelopment = false } = {}) => {
  let failed = 0;
  let loggedAt = -Infinity;
  const isLogged = (): boolean =>
    failed > 0 && (isDevelopment || performance.now() - loggedAt < LOG_AGAIN_MS);
  return {
    /** Whether the log has the reason already. */
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
    started(): void {
      if (failed > 1) logger.info({ failed_starts: failed }, "graph processes start again");
      failed = 0;
      loggedAt = -Infinity;
    },
  };
};
