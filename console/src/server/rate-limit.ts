const TOO_MANY_REQUESTS = 429;

/** Whoever is to wait longer is told so: nobody looks at a page for so long that does nothing. */
export const WAIT_AT_MOST_SECONDS = 30;
const TRIES = 3;

/** The seconds after which the server, or a proxy, wants to be asked again; undefined if it does not say. */
export const retryAfterSeconds = (answer: Response, now = Date.now()): number | undefined => {
  if (answer.status !== TOO_MANY_REQUESTS) return undefined;
  const said = answer.headers.get("retry-after")?.trim() ?? "";
  const seconds = /^\d{1,9}$/.test(said) ? Number(said) : Math.ceil((Date.parse(said) - now) / 1_000);
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
};

/** @throws what the signal was aborted with */
const pause = (seconds: number, signal: AbortSignal | null | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const abort = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, seconds * 1_000);
    signal?.addEventListener("abort", abort, { once: true });
  });

/** Reads once more what was refused for coming too often, when it may. Nothing else is sent again by itself. */
export const fetchWithRetry: typeof fetch = async (input, init) => {
  const method = init?.method ?? (input instanceof Request ? input.method : "GET");
  for (let tried = 1; ; tried += 1) {
    const answer = await fetch(input, init);
    const seconds = retryAfterSeconds(answer);
    if (method.toUpperCase() !== "GET" || tried === TRIES) return answer;
    if (seconds === undefined || seconds > WAIT_AT_MOST_SECONDS) return answer;
    // Unread, it keeps its connection.
    await answer.body?.cancel();
    // Not all tabs at the same moment.
    await pause(seconds + Math.random(), init?.signal);
  }
};

/** A sentence of a refusal with the time after which it may do, where that is known and not said. */
export const withRetryTime = (sentence: string, answer: Response): string => {
  const seconds = retryAfterSeconds(answer);
  if (seconds === undefined || /\bseconds?\b/.test(sentence)) return sentence;
  return `${sentence} Try again in ${seconds === 1 ? "a second" : `${seconds} seconds`}.`;
};
