import { useSyncExternalStore } from "react";

const subscribe = (onChange: () => void): (() => void) => {
  document.addEventListener("visibilitychange", onChange);
  return () => document.removeEventListener("visibilitychange", onChange);
};

export const useIsVisible = (): boolean =>
  useSyncExternalStore(subscribe, () => document.visibilityState === "visible");
