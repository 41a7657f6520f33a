/* How fast a client has to take what it is sent, and in what pieces its socket is given that. */

/** A reader whose socket takes nothing for this long is dropped: it holds memory and learns nothing. */
export const STALLED_MS = 60_000;

/** What a socket is given at once. */
export const WRITE_CHARACTERS = 64 * 1024;
/** A reader has to take so many characters within STALLED_MS; whoever takes them by drops holds memory, too. */
export const TAKEN_CHARACTERS = 1024 * 1024;

/** A text in pieces; none ends between the halves of a surrogate pair, which would be written as two others. */
export function* inPieces(text: string): Generator<string, void> {
  for (let start = 0; start < text.length;) {
    let end = start + WRITE_CHARACTERS;
    const last = text.charCodeAt(end - 1);
    if (last >= 0xd800 && last <= 0xdbff) end -= 1;
    yield text.slice(start, end);
    start = end;
  }
}
