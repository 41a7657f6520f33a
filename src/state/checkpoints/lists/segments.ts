import { StateStorageError } from "../../../platform/domain/errors.ts";

/** The elements [from, to) of a list of rows. */
export interface Segment {
  list: number;
  from: number;
  to: number;
  /** The list continued after `to` when this was stored, so no writer may append there. */
  closed: boolean;
}

export interface ElementPlace {
  list: number;
  position: number;
  tree: unknown;
}

/** Positions from `move.from` on belong to another list. */
export const movedSegment = (
  segment: Segment,
  move: { from: number; list: number } | undefined,
): Segment[] => {
  if (move === undefined || segment.to <= move.from) return [segment];
  const { from, to, closed } = segment;
  const after = { list: move.list, from: Math.max(from - move.from, 0), to: to - move.from, closed };
  return from < move.from ? [{ ...segment, to: move.from, closed: true }, after] : [after];
};

/** `place` is fast if each index is larger than the one before. */
export class SegmentCursor {
  private current = 0;
  private start = 0;

  constructor(private readonly segments: readonly Segment[]) {}

  place(index: number, tree: unknown): ElementPlace {
    if (index < this.start) {
      this.current = 0;
      this.start = 0;
    }
    let segment = this.segments[this.current];
    while (segment !== undefined && index >= this.start + segment.to - segment.from) {
      this.start += segment.to - segment.from;
      this.current += 1;
      segment = this.segments[this.current];
    }
    if (segment === undefined) throw new StateStorageError(`A stored list has no element ${index}.`);
    return { list: segment.list, position: segment.from + index - this.start, tree };
  }
}

export const toTriples = (segments: readonly Segment[]): number[] =>
  segments.flatMap(({ list, from, to, closed }) => [closed ? -list : list, from, to]);

export const toSegments = (triples: readonly number[]): Segment[] => {
  const segments: Segment[] = [];
  for (let index = 0; index + 2 < triples.length; index += 3) {
    const list = triples[index] as number;
    segments.push({
      list: Math.abs(list),
      from: triples[index + 1] as number,
      to: triples[index + 2] as number,
      closed: list < 0,
    });
  }
  return segments;
};
