/**
 * Each column is one text, joined by control characters that JSON never contains. An array literal would escape every
 * quote, and PostgreSQL would parse the text twice.
 */

import type { Parameter } from "../../../platform/database/statement.ts";
import type { Encryption } from "../../../platform/database/database.ts";
import { largeStringsOf, REFERENCE_MARK } from "../../values/large-strings.ts";
import { isUuid } from "../../../platform/lib/ids.ts";
import type { Batch, NewWrites } from "../rows/new-rows.ts";
import { storedWrites } from "../rows/encryption.ts";
import { LINE, RECORD, UNIT } from "../rows/separators.ts";
import { threadKey } from "../rows/thread-key.ts";

export interface BatchSource extends Batch {
  threadId: string;
  asynchronous: boolean;
}

/** Stands for null. */
const NO_RUN = "00000000-0000-0000-0000-000000000000";

export const joined = <Item>(items: readonly Item[], text: (item: Item) => string): string =>
  items.map(text).join(RECORD);

const keyOf = ({ checkpointNs, checkpointId }: { checkpointNs: string; checkpointId: string }) => ({
  checkpoint_ns: checkpointNs,
  checkpoint_id: checkpointId,
});

export const writesColumns = (task: NewWrites, encryption?: Encryption): string =>
  [
    task.checkpointNs,
    task.checkpointId,
    threadKey(task.taskId),
    task.runId ?? NO_RUN,
    isUuid(task.taskId) ? "" : task.taskId,
    encryption === undefined ? task.writes : storedWrites(encryption, task.writes, keyOf(task), task.taskId),
    task.segments.join(),
    task.contents.join(),
  ].join(UNIT);

const stringsOfRows = (
  rows: ReadonlyArray<readonly string[]>,
): Array<{ hashes: string; bytes: number | null }> =>
  rows.map((texts) => {
    const strings = texts.flatMap(largeStringsOf);
    // A reader gets each repetition.
    const bytes = strings.reduce((sum, one) => sum + one.bytes, 0);
    return { hashes: [...new Set(strings.map(({ hash }) => hash))].join(), bytes: bytes || null };
  });
/** Loops, because each run would pay for the callbacks. */
const ofElements = ({ elements }: Pick<Batch, "elements">) => {
  for (const { texts } of elements)
    for (const text of texts)
      if (text.includes(REFERENCE_MARK)) return stringsOfRows(elements.map((row) => row.texts));
  return undefined;
};
const ofContents = ({ contents }: Pick<Batch, "contents">) => {
  for (const { text } of contents)
    if (text.includes(REFERENCE_MARK)) return stringsOfRows(contents.map((row) => [row.text]));
  return undefined;
};
/** Without `writes`. */
export const ROW_PARAMETERS = {
  elementLists: ["bigint[]", ({ elements }) => elements.map((row) => row.list)],
  elementPositions: ["integer[]", ({ elements }) => elements.map((row) => row.position)],
  elementCounts: ["integer[]", ({ elements }) => elements.map((row) => row.texts.length)],
  elementTexts: [
    "text",
    ({ elements }) => joined(elements, (row) => row.texts.join(LINE)),
    ({ elements }, encryption) =>
      joined(elements, (row) =>
        encryption.stored("checkpoint_elements", "elements", row.texts.join(LINE), row),
      ),
  ],
  elementStrings: [
    "text",
    (batch) =>
      ofElements(batch)
        ?.map(({ hashes }) => hashes)
        .join(RECORD),
  ],
  elementStringBytes: ["integer[]", (batch) => ofElements(batch)?.map(({ bytes }) => bytes)],
  contentHashes: ["uuid[]", ({ contents }) => contents.map((content) => content.hash)],
  contentTexts: [
    "text",
    ({ contents }) => joined(contents, ({ text }) => text),
    ({ contents }, encryption) =>
      joined(contents, (row) => encryption.stored("checkpoint_contents", "content", row.text, row)),
  ],
  contentStrings: [
    "text",
    (batch) =>
      ofContents(batch)
        ?.map(({ hashes }) => hashes)
        .join(RECORD),
  ],
  contentStringBytes: ["integer[]", (batch) => ofContents(batch)?.map(({ bytes }) => bytes)],
  checkpointNsOfEach: ["text[]", ({ checkpoints }) => checkpoints.map((row) => row.checkpointNs)],
  checkpointIds: ["uuid[]", ({ checkpoints }) => checkpoints.map((row) => row.checkpointId)],
  checkpointParentIds: ["uuid[]", ({ checkpoints }) => checkpoints.map((row) => row.parentId)],
  checkpointRunIds: ["uuid[]", ({ checkpoints }) => checkpoints.map((row) => row.runId)],
  checkpointMetadata: ["text", ({ checkpoints }) => joined(checkpoints, (row) => row.metadata)],
  checkpointMetadataTexts: ["text", ({ checkpoints }) => joined(checkpoints, (row) => row.metadataText)],
  checkpointRecords: [
    "text",
    ({ checkpoints }) => joined(checkpoints, (row) => row.record),
    ({ checkpoints }, encryption) =>
      joined(checkpoints, (row) => encryption.stored("checkpoints", "record", row.record, keyOf(row))),
  ],
  checkpointSegments: ["text", ({ checkpoints }) => joined(checkpoints, (row) => row.segments.join())],
  checkpointContents: ["text", ({ checkpoints }) => joined(checkpoints, (row) => row.contents.join())],
  checkpointShapes: ["uuid[]", ({ checkpoints }) => checkpoints.map((row) => row.shape)],
} satisfies Record<string, Parameter<Omit<Batch, "writes">>>;

export const BATCH_PARAMETERS = {
  threadId: ["uuid", ({ threadId }) => threadId],
  ...ROW_PARAMETERS,
  writes: [
    "text",
    ({ writes }) => joined(writes, (task) => writesColumns(task)),
    ({ writes }, encryption) => joined(writes, (task) => writesColumns(task, encryption)),
  ],
  asynchronous: ["boolean", ({ asynchronous }) => asynchronous],
} satisfies Record<string, Parameter<BatchSource>>;

export type BatchParameter = keyof typeof BATCH_PARAMETERS;
