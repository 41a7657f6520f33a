import type { ServerResponse } from "node:http";

/** How long somebody may take over an answer. */
export interface TakersPatience {
  /** Whoever takes no piece in this time is cut off. */
  stalledMs: number;
  /** Whoever has not taken the whole in this time is cut off, too; undefined: who takes something may go on. */
  takenWithinMs?: number;
}

/** Until it is taken, the whole of such an answer stays in memory here. 16 MB in ten minutes are 220 kbit/s. */
export const WHOLE_ANSWER_PATIENCE: TakersPatience = { stalledMs: 60_000, takenWithinMs: 600_000 };

/**
 * Small enough for a slow connection: 256 KiB in a minute are 35 kbit/s. Large enough for a fast one: a socket that takes
 * all at once is given 16 MiB in 64 turns.
 */
const PIECE_CHARACTERS = 256 * 1024;
/** A blocked event loop delays a timer and the pieces alike: only several looks in turn tell who is late. */
const CHECKS_AT_MOST = 4;

/**
 * The pieces of an answer, cut smaller, for a stream that is piped to the response. Closes the connection of who takes no
 * piece for a while. The last pieces are on their way when this has ended: they are looked after until the response
 * is closed.
 */
export async function* attended(
  response: ServerResponse,
  pieces: AsyncIterable<string> | Iterable<string>,
  { stalledMs, takenWithinMs }: TakersPatience,
): AsyncGenerator<string, void, undefined> {
  if (response.destroyed) return;
  let isOffered = false;
  let checks = 0;
  const timer = setInterval(() => {
    if (!isOffered) return;
    checks += 1;
    if (checks > CHECKS_AT_MOST) response.destroy();
  }, stalledMs / CHECKS_AT_MOST);
  const end = takenWithinMs === undefined ? undefined : setTimeout(() => response.destroy(), takenWithinMs);
  response.once("close", () => {
    clearInterval(timer);
    clearTimeout(end);
  });
  for await (const piece of pieces) {
    for (const part of partsOf(piece)) {
      checks = 0;
      isOffered = true;
      yield part;
    }
    // The next one is being made, which is nothing that the taker could hurry.
    isOffered = false;
  }
  checks = 0;
  isOffered = true;
}

/** Characters outside the basic plane are pairs: half of one is written as another character. */
const isFirstOfPair = (code: number): boolean => code >= 0xd800 && code <= 0xdbff;

function* partsOf(text: string): Generator<string, void, undefined> {
  for (let start = 0; start < text.length;) {
    let end = start + PIECE_CHARACTERS;
    if (end < text.length && isFirstOfPair(text.charCodeAt(end - 1))) end -= 1;
    yield text.slice(start, end);
    start = end;
  }
}
