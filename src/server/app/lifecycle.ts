/** `failed`: the process ends after a fault that may be a run's. */
export type Closer = (options: { failed: boolean }) => Promise<void> | void;

/** What has been opened, so that it can be closed: whoever opens something says at once how it ends. */
export interface Lifecycle {
  /** Closes last what was opened first. */
  onClose(closer: Closer): void;
  /** The same for what closes itself; returns it. */
  closing<Opened extends { close(): Promise<void> | void }>(opened: Opened): Opened;
  /** Closes each thing, though others could not be closed; rejects with an `AggregateError` of what those threw. */
  close(options?: { failed?: boolean }): Promise<void>;
}

export const createLifecycle = (): Lifecycle => {
  const closers: Closer[] = [];
  return {
    onClose: (closer) => void closers.push(closer),
    closing(opened) {
      closers.push(() => opened.close());
      return opened;
    },
    async close({ failed = false } = {}) {
      const errors: unknown[] = [];
      for (const closer of closers.splice(0).reverse()) {
        try {
          await closer({ failed });
        } catch (error) {
          errors.push(error);
        }
      }
      if (errors.length > 0) throw new AggregateError(errors, "Not everything could be closed.");
    },
  };
};
