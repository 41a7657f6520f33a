export interface Mutant {
  file: string;
  /** The statement or function with the fault, by its name in the source. */
  place: string;
  line: number;
  operator: string;
  /** The text from `start` to `end` is replaced by `replacement`. */
  start: number;
  end: number;
  replacement: string;
  /** The text before and after the change, for people. */
  before: string;
  after: string;
}

/** A change of a text: its position, and the new text. */
export interface Change {
  operator: string;
  start: number;
  end: number;
  replacement: string;
  before: string;
  after: string;
}

export const applied = (
  source: string,
  { start, end, replacement }: Pick<Change, "start" | "end" | "replacement">,
) => source.slice(0, start) + replacement + source.slice(end);

export const nameOf = ({ file, place, line, operator, before, after }: Mutant): string =>
  `${file}:${line} ${place} [${operator}] ${before} -> ${after === "" ? "(nothing)" : after}`;
