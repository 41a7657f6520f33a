import { unavailable } from "../../platform/domain/errors.ts";

/** Handlers may call remote servers while requests wait. */
export const HANDLER_SECONDS = 10;

/**
 * Throws `unavailable` if a handler's answer is late. `gone`: called only for promises; aborts when the caller leaves.
 */
export const inTime = async (answer: unknown, ms: number, gone?: () => AbortSignal): Promise<unknown> => {
  if (!(answer instanceof Object) || typeof (answer as { then?: unknown }).then !== "function") return answer;
  const signal = gone?.();
  let timer: NodeJS.Timeout | undefined;
  let onGone: (() => void) | undefined;
  const limit = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(
      () => reject(unavailable("The handlers of 'auth' did not answer in time; try again.")),
      ms,
    );
    onGone = () => reject(signal?.reason as Error);
    signal?.addEventListener("abort", onGone, { once: true });
    if (signal?.aborted) onGone();
  });
  try {
    return await Promise.race([answer, limit]);
  } finally {
    clearTimeout(timer);
    if (onGone !== undefined) signal?.removeEventListener("abort", onGone);
  }
};
