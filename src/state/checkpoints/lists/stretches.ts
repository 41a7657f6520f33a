/** A shorter stretch is stored again: a few hundred bytes instead of a segment. */
export const STRETCH_WORTH_A_SEGMENT = 8;

/** `start`: index in the array. A known stretch is stored at [from, to) of its list. */
export type Stretch =
  | { known: true; list: number; from: number; to: number; closed: boolean; start: number }
  | { known: false; start: number; end: number };

/** Limits the number of segments. */
export const joinStretches = (stretches: readonly Stretch[]): Stretch[] => {
  const joined: Stretch[] = [];
  for (const stretch of stretches) {
    let last = joined[joined.length - 1];
    if (stretch.known) {
      if (last !== undefined && !last.known && lengthOf(stretch) < STRETCH_WORTH_A_SEGMENT)
        last.end += lengthOf(stretch);
      else joined.push(stretch);
      continue;
    }
    let start = stretch.start;
    if (!(last?.known && !last.closed)) {
      while (last !== undefined && (!last.known || lengthOf(last) < STRETCH_WORTH_A_SEGMENT)) {
        start = last.start;
        joined.pop();
        last = joined[joined.length - 1];
        if (last?.known && !last.closed) break;
      }
    }
    joined.push({ known: false, start, end: stretch.end });
  }
  return joined;
};

const lengthOf = (stretch: Stretch): number =>
  stretch.known ? stretch.to - stretch.from : stretch.end - stretch.start;
