const POLL_MS = 500;

export interface NpmParentOptions {
  environment: Readonly<Record<string, string | undefined>>;
  /** The id of the process that has started this one, as of now. */
  parent(): number;
  /** Whether this process leads a group of its own, as after `setsid` or in the background of a shell: it was meant to go on alone. */
  leadsGroup(): boolean;
  /** Called once: the shell of npm has ended. */
  onEnd(): void;
}

/**
 * Watches for the end of the shell in which npm (`npx`, `npm run`) has started this process. npm passes SIGTERM on to that shell,
 * and a shell such as dash ends without passing it on. Does nothing for a process that npm has not started.
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
