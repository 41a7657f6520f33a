import { apiErrorFrom } from "./api-error.ts";
import { retryAfterSeconds, WAIT_AT_MOST_SECONDS } from "./rate-limit.ts";

/**
 * Opens the streams of a thread only while they are wanted. Over HTTP/1.1 all tabs share six connections, and
 * the official client keeps two per thread, so three idle tabs would block a fourth.
 */
export interface StreamGate {
  /** Streams wait until they are wanted, then resume after the last event that was read. */
  readonly fetch: typeof fetch;
  readonly isOpen: boolean;
  /**
   * Resolves when the server accepts the next command.
   * @throws Error if the server rejects the command or is unreachable
   */
  nextCommand(): Promise<void>;
  /** Includes keep-alive comments. */
  readonly chunkCount: number;
  /** Unwanted streams are cut after a delay. */
  setWanted(isWanted: boolean): void;
  /** Cuts the streams at once. `setWanted` opens the gate again. */
  close(): void;
}

/** The end of a run has several events, and the user may return soon. */
const CLOSE_DELAY_MS = 3_000;

const STREAM_PATH = /\/stream\/events$/;
/** The client does not reopen a stream after this error. */
const CLOSED = Object.assign(new Error("This thread is no longer shown."), { status: 499 });

/** As in the official client, but a stream that the gate cut reopens as soon as it is wanted. */
export const reconnectDelayMs = (attempt: number): number =>
  attempt === 1 ? Math.random() * 300 : Math.min(1_000 * 2 ** (attempt - 2), 5_000) + Math.random() * 1_000;

const NEWLINE = 10;
/** Longer than any line with an id; bounds the memory for large data. */
const LINE_AT_MOST = 512;

const readIds = (
  onChunk: () => void,
  onId: (id: string) => void,
): TransformStream<Uint8Array, Uint8Array> => {
  const decoder = new TextDecoder();
  let line = "";
  let id: string | undefined;
  return new TransformStream({
    transform(chunk, controller) {
      onChunk();
      for (let start = 0; start < chunk.length;) {
        const end = chunk.indexOf(NEWLINE, start);
        const stop = end === -1 ? chunk.length : end;
        if (line.length < LINE_AT_MOST) {
          line += decoder.decode(chunk.subarray(start, Math.min(stop, start + LINE_AT_MOST)));
        }
        if (end === -1) break;
        if (line.startsWith("id: ")) id = line.slice(4);
        else if (line === "" && id !== undefined) onId(id);
        line = "";
        start = end + 1;
      }
      controller.enqueue(chunk);
    },
  });
};

/** The server has stored nothing, so the command may be sent again. */
const SERVICE_UNAVAILABLE = 503;
const RESEND_DELAY_MS = 1_000;

const sendCommand: typeof fetch = async (input, init) => {
  const answer = await fetch(input, init);
  // The official client drops the headers of an error.
  if (retryAfterSeconds(answer) !== undefined) throw await apiErrorFrom(answer);
  if (answer.status !== SERVICE_UNAVAILABLE) return answer;
  await new Promise((resolve) => setTimeout(resolve, RESEND_DELAY_MS));
  return await fetch(input, init);
};

const REOPEN_DELAY_MS = 2_000;

/** The official client gives up while a server restarts, and would show a run as running for ever. */
const openWithRetry = async (open: () => Promise<Response>): Promise<Response> => {
  for (;;) {
    try {
      const answer = await open();
      const seconds = retryAfterSeconds(answer);
      if (answer.status < 500 && seconds === undefined) return answer;
      // An unread body keeps its connection.
      await answer.body?.cancel();
      const waited = Math.min(seconds ?? 0, WAIT_AT_MOST_SECONDS) * 1_000;
      await new Promise((resolve) => setTimeout(resolve, waited));
    } catch (error) {
      // Only a network error is a TypeError; after any other the stream is cut or unwanted.
      if (!(error instanceof TypeError)) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, REOPEN_DELAY_MS * (0.5 + Math.random())));
  }
};

interface Waiter {
  resolve(): void;
  reject(fault: unknown): void;
}

/** Before the official client, which treats a rejected command as the end of the run. */
const notifyWaiters = async (
  waiting: readonly Waiter[],
  send: () => Promise<Response>,
): Promise<Response> => {
  try {
    const answer = await send();
    if (answer.ok) for (const { resolve } of waiting) resolve();
    else {
      const refusal = await apiErrorFrom(answer.clone());
      for (const { reject } of waiting) reject(refusal);
    }
    return answer;
  } catch (error) {
    for (const { reject } of waiting) reject(error);
    throw error;
  }
};

export const createStreamGate = (): StreamGate => {
  let isOpen = false;
  let isClosed = false;
  let chunkCount = 0;
  const commandWaiters = new Set<Waiter>();
  let closing: ReturnType<typeof setTimeout> | undefined;
  let opening = new AbortController();
  const changes = new EventTarget();
  /** By signal, which the client reuses when it reopens a stream. */
  const lastIds = new WeakMap<AbortSignal, string>();

  const cut = (): void => {
    clearTimeout(closing);
    closing = undefined;
    isOpen = false;
    opening.abort();
  };

  /** @throws an error after which the client does not reopen the stream */
  const untilOpen = async (signal: AbortSignal): Promise<void> => {
    while (!isOpen) {
      if (isClosed) throw CLOSED;
      signal.throwIfAborted();
      // The client reuses `signal`, so listeners would pile up on it.
      const waiting = new AbortController();
      await new Promise((resolve) => {
        changes.addEventListener("change", resolve, { signal: waiting.signal });
        signal.addEventListener("abort", resolve, { signal: waiting.signal });
      });
      waiting.abort();
    }
  };

  const openStream: typeof fetch = async (input, init) => {
    const signal = init?.signal ?? new AbortController().signal;
    await untilOpen(signal);
    const headers = new Headers(init?.headers);
    const lastId = lastIds.get(signal);
    if (lastId !== undefined) headers.set("last-event-id", lastId);
    const answer = await openWithRetry(() =>
      fetch(input, { ...init, headers, signal: AbortSignal.any([signal, opening.signal]) }),
    );
    if (!answer.ok || answer.body === null) return answer;
    const body = answer.body.pipeThrough(
      readIds(
        () => (chunkCount += 1),
        (id) => lastIds.set(signal, id),
      ),
    );
    return new Response(body, { status: answer.status, headers: answer.headers });
  };

  return {
    get isOpen() {
      return isOpen;
    },

    get chunkCount() {
      return chunkCount;
    },

    fetch: (input, init) => {
      const [path = ""] = String(input instanceof Request ? input.url : input).split(/[?#]/, 1);
      if (STREAM_PATH.test(path)) return openStream(input, init);
      const waiting = [...commandWaiters];
      commandWaiters.clear();
      return notifyWaiters(waiting, () => sendCommand(input, init));
    },

    nextCommand: () => new Promise((resolve, reject) => commandWaiters.add({ resolve, reject })),

    setWanted(isWanted) {
      isClosed = false;
      if (!isWanted) {
        if (isOpen) closing ??= setTimeout(cut, CLOSE_DELAY_MS);
        return;
      }
      clearTimeout(closing);
      closing = undefined;
      if (isOpen) return;
      isOpen = true;
      opening = new AbortController();
      changes.dispatchEvent(new Event("change"));
    },

    close() {
      cut();
      isClosed = true;
      changes.dispatchEvent(new Event("change"));
    },
  };
};
