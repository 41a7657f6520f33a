import type { ServerResponse } from "node:http";

export interface TakersPatience {
  /** A client that takes no piece for this time is disconnected. */
  stalledMs: number;
  /** A client that has not taken the whole answer in this time is disconnected. Undefined: no limit. */
  takenWithinMs?: number;
}

/** The whole answer stays in memory until then. 16 MB in ten minutes are 220 kbit/s. */
export const WHOLE_ANSWER_PATIENCE: TakersPatience = { stalledMs: 60_000, takenWithinMs: 600_000 };

/** Slow connections pass: 256 KiB a minute are 35 kbit/s. A fast socket takes 16 MiB in 64 turns. */
const PIECE_CHARACTERS = 256 * 1024;
/** A blocked event loop delays the timer and the pieces alike, so one late check proves nothing. */
const CHECKS_AT_MOST = 4;

/**
 * Yields smaller pieces and disconnects a client that stops reading. The timers run until the response closes, because
 * the last pieces are in flight when the generator ends.
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
    // The client is not late while the server makes the next piece.
    isOffered = false;
  }
  checks = 0;
  isOffered = true;
}

/** Cutting a surrogate pair would corrupt its character. */
const isFirstOfPair = (code: number): boolean => code >= 0xd800 && code <= 0xdbff;

function* partsOf(text: string): Generator<string, void, undefined> {
  for (let start = 0; start < text.length;) {
    let end = start + PIECE_CHARACTERS;
    if (end < text.length && isFirstOfPair(text.charCodeAt(end - 1))) end -= 1;
    yield text.slice(start, end);
    start = end;
  }
}
