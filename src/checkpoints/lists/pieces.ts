/** The pieces that a list falls into when it is stored by difference: runs of elements that are stored, and of new ones. */

/** A shorter run of known elements next to new ones is stored again: one segment less for a few hundred bytes. */
export const RUN_WORTH_A_SEGMENT = 8;

/** From `start` on of the list that is to be stored. */
export type Piece =
  | { known: true; list: number; from: number; to: number; closed: boolean; start: number }
  | { known: false; start: number; end: number };

/** Gives up short known runs next to new ones, so that segments don't pile up. */
export const joinPieces = (pieces: readonly Piece[]): Piece[] => {
  const joined: Piece[] = [];
  for (const piece of pieces) {
    let last = joined[joined.length - 1];
    if (piece.known) {
      if (last !== undefined && !last.known && lengthOf(piece) < RUN_WORTH_A_SEGMENT)
        last.end += lengthOf(piece);
      else joined.push(piece);
      continue;
    }
    let start = piece.start;
    if (!(last?.known && !last.closed)) {
      while (last !== undefined && (!last.known || lengthOf(last) < RUN_WORTH_A_SEGMENT)) {
        start = last.start;
        joined.pop();
        last = joined[joined.length - 1];
        if (last?.known && !last.closed) break;
      }
    }
    joined.push({ known: false, start, end: piece.end });
  }
  return joined;
};

const lengthOf = (piece: Piece): number => (piece.known ? piece.to - piece.from : piece.end - piece.start);
