import { useEffect, useRef } from "react";
import type { Turns } from "./turns.ts";

/** Its end may come by another stream than what it has told. */
const STATE_WITHIN_MS = 1_000;

/**
 * Reads the stored state once when a run has ended whose stream had no state. A reader who joins late gets only the beginning and the
 * end of a run of the other wire (docs/decisions/033-one-log-for-two-wires.md).
 */
export const useMissingState = (isLoading: boolean, turns: Turns, reload: () => void): void => {
  const wasLoading = useRef(false);
  const reloadedTurn = useRef(0);
  useEffect(() => {
    const hasEnded = wasLoading.current && !isLoading;
    wasLoading.current = isLoading;
    if (!hasEnded) return;
    const timer = setTimeout(() => {
      if (!turns.lacksState || reloadedTurn.current === turns.newest) return;
      reloadedTurn.current = turns.newest;
      reload();
    }, STATE_WITHIN_MS);
    return () => clearTimeout(timer);
  }, [isLoading, turns, reload]);
};
