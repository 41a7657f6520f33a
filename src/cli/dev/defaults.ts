/** Options of `dev` that differ from those of `start`. The server has little time to close, since its runs go on at the next start. */
export const DEFAULTS = {
  WORKERS: "1",
  LOG_FORMAT: "pretty",
  LOG_CONTENTS: "true",
  BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS: "2",
};
