import { apiErrorFrom } from "./api-error.ts";
import { retryAfterSeconds, WAIT_AT_MOST_SECONDS } from "./rate-limit.ts";

/**
 * The streams of a thread, which are open only while somebody wants them. Over HTTP/1.1 a browser has six connections to a server, for
 * all of its tabs together, and a stream takes one for as long as it is open; the official client keeps two for a thread on which
 * something ran. Three tabs left alone would keep the fourth from loading.
 */
export interface StreamGate {
  /** For the official client: streams wait until they are wanted, and go on behind the last event that was read. */
  readonly fetch: typeof fetch;
  /** False as long as nothing is told, since nobody wants it. */
  readonly isOpen: boolean;
  /** Resolves when the next command has been taken. @throws Error if it is refused, or the server can't be reached */
  nextCommand(): Promise<void>;
  /** How many pieces of streams have come, signs of life among them. */
  readonly chunks: number;
  /** No longer wanted: they are cut after a while, unless they are wanted again before. */
  setWanted(isWanted: boolean): void;
  /** Cuts them at once, and refuses those that wait. `want` begins anew. */
  close(): void;
}

/** Ends of runs are told in several events, and whoever looks away for a moment looks back. */
const CLOSE_DELAY_MS = 3_000;

const STREAM_PATH = /\/stream\/events$/;
/** The client opens no stream again that was refused like this. */
const CLOSED = Object.assign(new Error("This thread is no longer shown."), { status: 499 });

/** For the official client: as long as its own, but that streams which were cut here wait for nothing else than to be wanted. */
export const reconnectDelayMs = (attempt: number): number =>
  attempt === 1 ? Math.random() * 300 : Math.min(1_000 * 2 ** (attempt - 2), 5_000) + Math.random() * 1_000;

const NEWLINE = 10;
/** The line that names an event is shorter; data of megabytes are not kept here. */
const LINE_AT_MOST = 512;

/** Tells of each piece that comes, and the id of each server-sent event that has come whole. */
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

/** The server has stored nothing, so the same may be sent again. */
const SERVICE_UNAVAILABLE = 503;
const RESEND_DELAY_MS = 1_000;

const sendCommand: typeof fetch = async (input, init) => {
  const answer = await fetch(input, init);
  // The official client keeps no headers of a refusal.
  if (retryAfterSeconds(answer) !== undefined) throw await apiErrorFrom(answer);
  if (answer.status !== SERVICE_UNAVAILABLE) return answer;
  await new Promise((resolve) => setTimeout(resolve, RESEND_DELAY_MS));
  return await fetch(input, init);
};

const REOPEN_DELAY_MS = 2_000;

/**
 * A server that is started again, or whose proxy says that it is not there: the client gives up after a few times, and would show a run as
 * going on for ever.
 */
const openWithRetry = async (open: () => Promise<Response>): Promise<Response> => {
  for (;;) {
    try {
      const answer = await open();
      const seconds = retryAfterSeconds(answer);
      if (answer.status < 500 && seconds === undefined) return answer;
      // Unread, it keeps its connection.
      await answer.body?.cancel();
      const waited = Math.min(seconds ?? 0, WAIT_AT_MOST_SECONDS) * 1_000;
      await new Promise((resolve) => setTimeout(resolve, waited));
    } catch (error) {
      // What was cut here, or is not wanted any more; else the network.
      if (!(error instanceof TypeError)) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, REOPEN_DELAY_MS * (0.5 + Math.random())));
  }
};

interface Waiter {
  resolve(): void;
  reject(fault: unknown): void;
}

/** Those who wait are told before the client is: it takes what is refused for the end of what it does. */
const notifying = async (waiting: readonly Waiter[], send: () => Promise<Response>): Promise<Response> => {
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
  let chunks = 0;
  /** Those who wait for the next command. */
  const commandWaiters = new Set<Waiter>();
  let closing: ReturnType<typeof setTimeout> | undefined;
  /** Aborted as the gate closes. */
  let opening = new AbortController();
  /** Told as the gate opens, or is left. */
  const changes = new EventTarget();
  /** By the signal of a stream, which stays the same while the client opens it again: the last event that was read. */
  const lastIds = new WeakMap<AbortSignal, string>();

  const cutStreams = (): void => {
    clearTimeout(closing);
    closing = undefined;
    isOpen = false;
    opening.abort();
  };

  /** @throws what the client takes for an end */
  const untilOpen = async (signal: AbortSignal): Promise<void> => {
    while (!isOpen) {
      if (isClosed) throw CLOSED;
      signal.throwIfAborted();
      // The signal is the same each time that the client opens the stream again.
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
        () => (chunks += 1),
        (id) => lastIds.set(signal, id),
      ),
    );
    return new Response(body, { status: answer.status, headers: answer.headers });
  };

  return {
    get isOpen() {
      return isOpen;
    },

    get chunks() {
      return chunks;
    },

    fetch: (input, init) => {
      const [path = ""] = String(input instanceof Request ? input.url : input).split(/[?#]/, 1);
      if (STREAM_PATH.test(path)) return openStream(input, init);
      const waiting = [...commandWaiters];
      commandWaiters.clear();
      return notifying(waiting, () => sendCommand(input, init));
    },

    nextCommand: () => new Promise((resolve, reject) => commandWaiters.add({ resolve, reject })),

    setWanted(isWanted) {
      isClosed = false;
      if (!isWanted) {
        if (isOpen) closing ??= setTimeout(cutStreams, CLOSE_DELAY_MS);
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
      cutStreams();
      isClosed = true;
      changes.dispatchEvent(new Event("change"));
    },
  };
};
