interface Hydrating {
  hydrationPromise: Promise<void>;
}

/**
 * Resolves when the hook has read the stored state. Until then the hook takes an ended run for a running one.
 */
export const whenHydrated = async (stream: () => Hydrating): Promise<void> => {
  for (let read: unknown; read !== stream().hydrationPromise;) {
    read = stream().hydrationPromise;
    await stream().hydrationPromise.catch(() => undefined);
  }
};
