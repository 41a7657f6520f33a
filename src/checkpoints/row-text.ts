/**
 * The text of a checkpoint's row: its versions, its channels, and what tasks wrote that was stored together with it,
 * in one value. There PostgreSQL's compression finds what they have in common (an input stands in the channel
 * `__start__` and in the write of the task that reads it), and no row and no index entry per task is needed. What
 * comes later is a row of `checkpoint_writes`.
 */

import { GROUP, UNIT } from "./repository.ts";

/** What one task wrote: a line per write. */
export type TaskWrites = [taskId: string, writes: string];

export interface RowText {
  /** See versions.ts. */
  body: string;
  /** See values.ts. */
  channels: string;
  writes: TaskWrites[];
}

export const composeRowText = ({ body, channels, writes }: RowText): string =>
  [body, channels, ...writes.map((task) => task.join(UNIT))].join(GROUP);

export const parseRowText = (text: string): RowText => {
  const [body = "", channels = "", ...tasks] = text.split(GROUP);
  return { body, channels, writes: tasks.map(parseTaskWrites) };
};

/** SQL: how many writes stand in `c.record`. Its only line breaks are between writes of one task. */
export const COUNT_WRITES_OF_C = `(
    length(c.record) - length(replace(c.record, E'\\x1d', '')) - 1
    + length(c.record) - length(replace(c.record, E'\\n', '')))`;

export const parseTaskWrites = (text: string): TaskWrites => {
  const end = text.indexOf(UNIT);
  return [text.slice(0, end), text.slice(end + 1)];
};
