/** `failed`: a run may have caused the end of the process. */
type Closer = (options: { failed: boolean }) => Promise<void> | void;

export interface Lifecycle {
  /** Closers run in reverse order. */
  onClose(closer: Closer): void;
  /** Returns `opened`. */
  closing<Opened extends { close(): Promise<void> | void }>(opened: Opened): Opened;
  /** Runs all closers, then rejects with an `AggregateError` of their errors. */
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
