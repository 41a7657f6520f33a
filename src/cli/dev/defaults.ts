/** A short grace period is enough, because the runs continue at the next start. */
export const DEFAULTS = {
  WORKERS: "1",
  LOG_FORMAT: "pretty",
  LOG_CONTENTS: "true",
  BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS: "2",
};
