import { useEffect, useRef } from "react";
import type { Turns } from "./turns.ts";

/** Its end may come by another stream than what it has told. */
const TOLD_WITHIN_MS = 1_000;

/**
 * A run that another client started while nobody followed the thread is told to who joins it by its beginning and its end alone
 * (docs/decisions/033-one-log-for-two-wires.md). So what it has stored is read when it has ended, once.
 */
export const useUntoldRun = (isLoading: boolean, turns: Turns, readAnew: () => void): void => {
  const wasLoading = useRef(false);
  const readFor = useRef(0);
  useEffect(() => {
    const hasEnded = wasLoading.current && !isLoading;
    wasLoading.current = isLoading;
    if (!hasEnded) return;
    const timer = setTimeout(() => {
      if (!turns.isUntold || readFor.current === turns.newest) return;
      readFor.current = turns.newest;
      readAnew();
    }, TOLD_WITHIN_MS);
    return () => clearTimeout(timer);
  }, [isLoading, turns, readAnew]);
};
