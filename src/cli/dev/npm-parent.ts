const POLL_MS = 500;

export interface NpmParentOptions {
  environment: Readonly<Record<string, string | undefined>>;
  /** The current parent's process id. */
  parent(): number;
  /** True after `setsid` or in a shell's background: the process is meant to outlive its parent. */
  leadsGroup(): boolean;
  onEnd(): void;
}

/**
 * Watches for the end of the shell in which npm (`npx`, `npm run`) started this process. npm sends SIGTERM to that
 * shell only, and a shell such as dash ends without passing it on.
 */
export const watchNpmParent = ({ environment, parent, leadsGroup, onEnd }: NpmParentOptions): void => {
  if (environment["npm_lifecycle_event"] === undefined || leadsGroup()) return;
  const before = parent();
  const timer = setInterval(() => {
    if (parent() === before) return;
    clearInterval(timer);
    onEnd();
  }, POLL_MS);
  timer.unref();
};
