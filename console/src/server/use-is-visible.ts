import { useSyncExternalStore } from "react";

const subscribe = (onChange: () => void): (() => void) => {
  document.addEventListener("visibilitychange", onChange);
  return () => document.removeEventListener("visibilitychange", onChange);
};

/** Whether the tab is in front of its window, and the window not covered or minimised. */
export const useIsVisible = (): boolean =>
  useSyncExternalStore(subscribe, () => document.visibilityState === "visible");
