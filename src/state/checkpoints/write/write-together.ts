import { LARGE_CHARACTERS, type GroupedStatement } from "../../../platform/database/grouping.ts";
import type { Encryption } from "../../../platform/database/database.ts";
import { arraysOf, columnsOf, rowsOf, statement } from "../../../platform/database/statement.ts";
import type { Batch } from "../rows/new-rows.ts";
import { UNIT } from "../rows/separators.ts";
import { ATTEMPT_PARAMETERS, HELD_BY_ATTEMPTS, type AttemptSource } from "./fences.ts";
import { joined, ROW_PARAMETERS, writesColumns, type BatchSource } from "./write-parameters.ts";
import { insertRows, WRITE_AS_ATTEMPT, type Answer } from "./write-statement.ts";

/* The statement that writes checkpoints of the attempts of several threads. */

type AttemptWrite = BatchSource & AttemptSource;

/** The rows of all writes. */
interface Together extends Omit<Batch, "writes"> {
  all: readonly AttemptWrite[];
}

const ATTEMPTS = {
  threadId: ["uuid", ({ threadId }: AttemptWrite) => threadId],
  ...ATTEMPT_PARAMETERS,
} as const;
type Name = keyof typeof ATTEMPTS;
const NAMES = Object.keys(ATTEMPTS) as Name[];
const ASKED = columnsOf("asked", NAMES);

const threadsOf =
  (rows: "elements" | "contents" | "checkpoints") =>
  ({ all }: Together): string[] =>
    all.flatMap((write) => write[rows].map(() => write.threadId));

const linesOf = (all: readonly AttemptWrite[], encryption?: Encryption): string =>
  joined(
    all.flatMap(({ threadId, writes }) =>
      writes.map((task) => `${writesColumns(task, encryption)}${UNIT}${threadId}`),
    ),
    (line) => line,
  );

const PARAMETERS = {
  ...arraysOf<Name, AttemptWrite, Together>(ATTEMPTS, ({ all }) => all),
  ...ROW_PARAMETERS,
  elementThreads: ["uuid[]", threadsOf("elements")],
  contentThreads: ["uuid[]", threadsOf("contents")],
  checkpointThreads: ["uuid[]", threadsOf("checkpoints")],
  writes: [
    "text",
    ({ all }: Together) => linesOf(all),
    ({ all }: Together, encryption: Encryption) => linesOf(all, encryption),
  ],
  asynchronous: ["boolean", ({ all }: Together) => all.every(({ asynchronous }) => asynchronous)],
} as const;

/** Leaves out attempts that no longer hold their run, and runs that are locked. */
const WRITE_AS_ATTEMPTS = statement(PARAMETERS, (sql) => {
  const asked = rowsOf("asked", NAMES, sql);
  return `${insertRows(sql, HELD_BY_ATTEMPTS(asked, ASKED), sql)}
select thread_id, case when ${sql.asynchronous} then set_config('synchronous_commit', 'off', true) end from fence`;
});

const HELD: Answer = { held: true, version: null };

/** Loops, because callbacks would cost a call per text. Ends early, because a batch may have millions of elements. */
const isLarge = ({ checkpoints, elements, contents, writes }: Batch): boolean => {
  let characters = 0;
  for (const { record, metadata } of checkpoints) characters += record.length + metadata.length;
  for (const { text } of contents) characters += text.length;
  for (const task of writes) characters += task.writes.length;
  for (const { texts } of elements) {
    for (const text of texts) {
      characters += text.length;
      if (characters > LARGE_CHARACTERS) return true;
    }
  }
  return characters > LARGE_CHARACTERS;
};

export const AS_ATTEMPT: GroupedStatement<AttemptWrite, Answer> = {
  threadOf: ({ threadId }) => threadId,
  isSeparate: isLarge,
  alone: async (queryable, write) => (await WRITE_AS_ATTEMPT.query<Answer>(queryable, write))[0],
  async together(queryable, all) {
    const rows = await WRITE_AS_ATTEMPTS.query<{ thread_id: string }>(queryable, {
      all,
      elements: all.flatMap(({ elements }) => elements),
      contents: all.flatMap(({ contents }) => contents),
      checkpoints: all.flatMap(({ checkpoints }) => checkpoints),
    });
    return new Map(rows.map(({ thread_id }) => [thread_id, HELD]));
  },
};
