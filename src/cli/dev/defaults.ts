/** What `dev` takes in place of a server's defaults. Closing has to be quick: what runs goes on at the next start. */
export const DEFAULTS = {
  WORKERS: "1",
  LOG_FORMAT: "pretty",
  LOG_CONTENTS: "true",
  BG_JOB_SHUTDOWN_GRACE_PERIOD_SECS: "2",
};
