const TOO_MANY_REQUESTS = 429;

/** For longer waits the user sees the error instead. */
export const WAIT_AT_MOST_SECONDS = 30;
const TRIES = 3;

export const retryAfterSeconds = (answer: Response, now = Date.now()): number | undefined => {
  if (answer.status !== TOO_MANY_REQUESTS) return undefined;
  const said = answer.headers.get("retry-after")?.trim() ?? "";
  const seconds = /^\d{1,9}$/.test(said) ? Number(said) : Math.ceil((Date.parse(said) - now) / 1_000);
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
};

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

export const fetchWithRetry: typeof fetch = async (input, init) => {
  const method = init?.method ?? (input instanceof Request ? input.method : "GET");
  for (let tried = 1; ; tried += 1) {
    const answer = await fetch(input, init);
    const seconds = retryAfterSeconds(answer);
    if (method.toUpperCase() !== "GET" || tried === TRIES) return answer;
    if (seconds === undefined || seconds > WAIT_AT_MOST_SECONDS) return answer;
    // An unread body keeps its connection.
    await answer.body?.cancel();
    // Keeps tabs from retrying together.
    await pause(seconds + Math.random(), init?.signal);
  }
};

export const withRetryTime = (sentence: string, answer: Response): string => {
  const seconds = retryAfterSeconds(answer);
  if (seconds === undefined || /\bseconds?\b/.test(sentence)) return sentence;
  return `${sentence} Try again in ${seconds === 1 ? "a second" : `${seconds} seconds`}.`;
};
