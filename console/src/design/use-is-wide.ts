import { useCallback, useSyncExternalStore } from "react";

export const useIsWide = (rem: number): boolean => {
  const query = `(min-width: ${rem}rem)`;
  const subscribe = useCallback(
    (changed: () => void) => {
      const media = matchMedia(query);
      media.addEventListener("change", changed);
      return () => media.removeEventListener("change", changed);
    },
    [query],
  );
  return useSyncExternalStore(subscribe, () => matchMedia(query).matches);
};
