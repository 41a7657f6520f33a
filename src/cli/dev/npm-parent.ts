const POLL_MS = 500;

export interface NpmParentOptions {
  environment: Readonly<Record<string, string | undefined>>;
  parent(): number;
  /** True after `setsid` or in a shell's background: the process may outlive its parent. */
  leadsGroup(): boolean;
  onEnd(): void;
}

/** npm sends SIGTERM only to the shell that it started. A shell such as dash ends without passing it on. */
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
