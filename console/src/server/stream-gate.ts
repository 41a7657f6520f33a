import { refusalIn } from "./api-error.ts";
import { secondsToWait, WAITED_AT_MOST_SECONDS } from "./rate-limit.ts";

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
  whenCommanded(): Promise<void>;
  /** How many pieces of streams have come, signs of life among them. */
  readonly heard: number;
  /** No longer wanted: they are cut after a while, unless they are wanted again before. */
  want(isWanted: boolean): void;
  /** Cuts them at once, and refuses those that wait. `want` begins anew. */
  leave(): void;
}

/** Ends of runs are told in several events, and whoever looks away for a moment looks back. */
const KEPT_MS = 3_000;

const PLACE = /\/stream\/events$/;
/** The client opens no stream again that was refused like this. */
const LEFT = Object.assign(new Error("This thread is no longer shown."), { status: 499 });

/** For the official client: as long as its own, but that streams which were cut here wait for nothing else than to be wanted. */
export const reconnectDelayMs = (attempt: number): number =>
  attempt === 1 ? Math.random() * 300 : Math.min(1_000 * 2 ** (attempt - 2), 5_000) + Math.random() * 1_000;

const NEWLINE = 10;
/** The line that names an event is shorter; data of megabytes are not kept here. */
const LINE_AT_MOST = 512;

/** Tells of each piece that comes, and the id of each server-sent event that has come whole. */
const tellIds = (
  onPiece: () => void,
  onId: (id: string) => void,
): TransformStream<Uint8Array, Uint8Array> => {
  const decoder = new TextDecoder();
  let line = "";
  let id: string | undefined;
  return new TransformStream({
    transform(chunk, controller) {
      onPiece();
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
const NOTHING_STORED = 503;
const AGAIN_MS = 1_000;

const sendCommand: typeof fetch = async (input, init) => {
  const answer = await fetch(input, init);
  // The official client keeps no headers of a refusal.
  if (secondsToWait(answer) !== undefined) throw await refusalIn(answer);
  if (answer.status !== NOTHING_STORED) return answer;
  await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  return await fetch(input, init);
};

const OPENED_AGAIN_MS = 2_000;

/**
 * A server that is started again, or whose proxy says that it is not there: the client gives up after a few times, and would show a run as
 * going on for ever.
 */
const openAgain = async (open: () => Promise<Response>): Promise<Response> => {
  for (;;) {
    try {
      const answer = await open();
      const seconds = secondsToWait(answer);
      if (answer.status < 500 && seconds === undefined) return answer;
      // Unread, it keeps its connection.
      await answer.body?.cancel();
      const waited = Math.min(seconds ?? 0, WAITED_AT_MOST_SECONDS) * 1_000;
      await new Promise((resolve) => setTimeout(resolve, waited));
    } catch (error) {
      // What was cut here, or is not wanted any more; else the network.
      if (!(error instanceof TypeError)) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, OPENED_AGAIN_MS * (0.5 + Math.random())));
  }
};

interface Waiting {
  resolve(): void;
  reject(fault: unknown): void;
}

/** Those who wait are told before the client is: it takes what is refused for the end of what it does. */
const telling = async (waiting: readonly Waiting[], send: () => Promise<Response>): Promise<Response> => {
  try {
    const answer = await send();
    if (answer.ok) for (const { resolve } of waiting) resolve();
    else {
      const refusal = await refusalIn(answer.clone());
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
  let hasLeft = false;
  let heard = 0;
  /** Those who wait for the next command. */
  const commanding = new Set<Waiting>();
  let closing: ReturnType<typeof setTimeout> | undefined;
  /** Aborted as the gate closes. */
  let opening = new AbortController();
  /** Told as the gate opens, or is left. */
  const changes = new EventTarget();
  /** By the signal of a stream, which stays the same while the client opens it again: the last event that was read. */
  const lastIds = new WeakMap<AbortSignal, string>();

  const shut = (): void => {
    clearTimeout(closing);
    closing = undefined;
    isOpen = false;
    opening.abort();
  };

  /** @throws what the client takes for an end */
  const whenOpen = async (signal: AbortSignal): Promise<void> => {
    while (!isOpen) {
      if (hasLeft) throw LEFT;
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
    await whenOpen(signal);
    const headers = new Headers(init?.headers);
    const lastId = lastIds.get(signal);
    if (lastId !== undefined) headers.set("last-event-id", lastId);
    const answer = await openAgain(() =>
      fetch(input, { ...init, headers, signal: AbortSignal.any([signal, opening.signal]) }),
    );
    if (!answer.ok || answer.body === null) return answer;
    const body = answer.body.pipeThrough(
      tellIds(
        () => (heard += 1),
        (id) => lastIds.set(signal, id),
      ),
    );
    return new Response(body, { status: answer.status, headers: answer.headers });
  };

  return {
    get isOpen() {
      return isOpen;
    },

    get heard() {
      return heard;
    },

    fetch: (input, init) => {
      const [place = ""] = String(input instanceof Request ? input.url : input).split(/[?#]/, 1);
      if (PLACE.test(place)) return openStream(input, init);
      const waiting = [...commanding];
      commanding.clear();
      return telling(waiting, () => sendCommand(input, init));
    },

    whenCommanded: () => new Promise((resolve, reject) => commanding.add({ resolve, reject })),

    want(isWanted) {
      hasLeft = false;
      if (!isWanted) {
        if (isOpen) closing ??= setTimeout(shut, KEPT_MS);
        return;
      }
      clearTimeout(closing);
      closing = undefined;
      if (isOpen) return;
      isOpen = true;
      opening = new AbortController();
      changes.dispatchEvent(new Event("change"));
    },

    leave() {
      shut();
      hasLeft = true;
      changes.dispatchEvent(new Event("change"));
    },
  };
};
