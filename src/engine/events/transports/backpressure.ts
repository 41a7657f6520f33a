/** A client whose socket does not take a batch in this time is dropped, because it holds memory. */
export const STALLED_MS = 60_000;

export const WRITE_CHARACTERS = 64 * 1024;
/** STALLED_MS begins again after this much of a batch, so a large batch may take longer. */
export const TAKEN_CHARACTERS = 1024 * 1024;

/** Never splits a surrogate pair, whose halves would be encoded as other characters. */
export function* inPieces(text: string): Generator<string, void> {
  for (let start = 0; start < text.length;) {
    let end = start + WRITE_CHARACTERS;
    const last = text.charCodeAt(end - 1);
    if (last >= 0xd800 && last <= 0xdbff) end -= 1;
    yield text.slice(start, end);
    start = end;
  }
}
