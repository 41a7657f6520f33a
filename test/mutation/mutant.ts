/** One small fault, put into one file. */
export interface Mutant {
  /** Path of the source file in the project. */
  file: string;
  /** The statement or function that it stands in, by the name that the source gives it. */
  place: string;
  line: number;
  /** What kind of change it is. */
  operator: string;
  /** The text from `start` to `end` is replaced by `replacement`. */
  start: number;
  end: number;
  replacement: string;
  /** What stood there, and what stands there now, for people. */
  before: string;
  after: string;
}

/** A change of a text: where, and what it becomes. */
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
