import { useEffect, useRef } from "react";
import type { Turns } from "../messages/turns.ts";

/** State and end may arrive on different streams. */
const STATE_WITHIN_MS = 1_000;

/**
 * Reads the stored state once after a run whose stream had none. A late reader gets only the start and the
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
