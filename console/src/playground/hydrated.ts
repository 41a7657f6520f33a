interface Hydrating {
  hydrationPromise: Promise<void>;
}

/**
 * Resolves when the hook has read the stored state. During the read the hook takes a stored run for a running
 * one, even if the run has ended. `stream`: returns the current stream.
 */
export const whenHydrated = async (stream: () => Hydrating): Promise<void> => {
  for (let read: unknown; read !== stream().hydrationPromise;) {
    read = stream().hydrationPromise;
    await stream().hydrationPromise.catch(() => undefined);
  }
};
