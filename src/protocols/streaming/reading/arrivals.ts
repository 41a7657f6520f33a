import type { Signals } from "../../../platform/database/signals.ts";
import { createBackOff } from "../../../platform/lib/back-off.ts";
import type { ReadAccess } from "../read-access.ts";

/** For lost signals: often for a client that is creating its thread, rarely for a page that stays open. */
const POLLS = { firstMs: 500, longestMs: 5_000 };
/** Short for a new thread, longer for another user's thread with a hundred signals a second. */
const AFTER_SIGNALS = { firstMs: 10, longestMs: 5_000 };

/** Waits for a missing or hidden thread, of which the reader learns nothing. Rejects if the database is away. */
export const untilExists = async (
  readAccess: ReadAccess,
  signals: Pick<Signals, "subscribeToThread">,
  signal: AbortSignal,
): Promise<void> => {
  const polls = createBackOff(POLLS);
  const afterSignals = createBackOff(AFTER_SIGNALS);
  let isSignalled = false;
  let wake = (): void => undefined;
  const pause = async (milliseconds: number): Promise<void> => {
    if (signal.aborted) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      wake = resolve;
      timer = setTimeout(resolve, milliseconds);
    });
    clearTimeout(timer);
  };
  const onAbort = (): void => wake();
  signal.addEventListener("abort", onAbort);
  const unsubscribe = signals.subscribeToThread(readAccess.threadId, ({ kind }) => {
    // Readers repeat these signals every few seconds.
    if (isSignalled || kind === "follow" || kind === "follow-protocol") return;
    isSignalled = true;
    wake();
  });
  try {
    while (!signal.aborted && !readAccess.hidesNothing && !(await readAccess.exists())) {
      if (!isSignalled) await pause(polls.next());
      if (!isSignalled) continue;
      await pause(afterSignals.next());
      isSignalled = false;
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    unsubscribe();
  }
};
