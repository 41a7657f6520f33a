/** `failed`: a run may have caused the end of the process. */
type Closer = (options: { failed: boolean }) => Promise<void> | void;

export const createLifecycle = () => {
  const closers: Closer[] = [];
  return {
    /** Closers run in reverse order. */
    onClose: (closer: Closer): void => void closers.push(closer),
    /** Returns `opened`. */
    closing<Opened extends { close(): Promise<void> | void }>(opened: Opened): Opened {
      closers.push(() => opened.close());
      return opened;
    },
    /** Runs all closers, then rejects with an `AggregateError` of their errors. */
    async close({ failed = false } = {}): Promise<void> {
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

export type Lifecycle = ReturnType<typeof createLifecycle>;
