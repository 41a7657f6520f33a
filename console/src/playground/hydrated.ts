interface Hydrating {
  hydrationPromise: Promise<void>;
}

/**
 * Resolves when the hook has read what is stored. While it reads, it takes a run that it finds there for one that goes on,
 * though its end was told meanwhile. `stream`: the one of now.
 */
export const whenHydrated = async (stream: () => Hydrating): Promise<void> => {
  for (let read: unknown; read !== stream().hydrationPromise;) {
    read = stream().hydrationPromise;
    await stream().hydrationPromise.catch(() => undefined);
  }
};
