import type { Visibility } from "../../access/visibility.ts";
import type { Database } from "../../platform/database/database.ts";
import { statement } from "../../platform/database/statement.ts";
import type { RunStatus, ThreadStatus } from "../../platform/database/tables.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import type { Interrupt } from "../calls/outcome.ts";

/** In the metadata of a run. */
export const CLIENT_RUN_ID = "agui_run_id";
/** The ids of the interrupts that the run answers. */
export const ANSWERS = "agui_answers";
/** The id of the last message of the request. */
export const LAST_MESSAGE = "agui_last_message";

export interface FoundRun {
  runId: string;
  status: RunStatus;
  lastMessage: string | null;
}

export interface ThreadRuns {
  /** Grows with each created run. */
  turns: number;
  /** The thread waits for answers to these interrupts. */
  interrupts: readonly Interrupt[];
  /** The newest run of the client's run id. */
  same: FoundRun | null;
  /** The newest run that answers the interrupts of the request. */
  answering: FoundRun | null;
  running: FoundRun | null;
  /** The newest. */
  pending: FoundRun | null;
  newest: FoundRun | null;
}

export interface Asked {
  clientRunId: string;
  /** Undefined: the request answers none. */
  answers: readonly string[] | undefined;
}

/** A client repeats a recent request, and a thread may have any number of runs. */
const SEARCHED_RUNS = 1_000;

const RUN = `json_build_object('runId', r.run_id, 'status', r.status, 'lastMessage', r.metadata ->> '${LAST_MESSAGE}')`;
const ONE = `select ${RUN} from threadloom.runs r where r.thread_id = t.thread_id`;
const NEWEST = "order by r.created_at desc, r.run_id desc limit 1";
const recent = (condition: string): string =>
  `select ${RUN} from (select run_id, status, metadata, created_at from threadloom.runs
    where thread_id = t.thread_id order by created_at desc limit ${SEARCHED_RUNS}) r where ${condition} ${NEWEST}`;

/** Indexes: threads_pkey, runs_by_thread, runs_one_begun_per_thread, runs_pending_of_thread. */
const THREAD_RUNS = statement(
  { threadId: "uuid", clientRunId: "text", answers: "jsonb", visible: "fragment" },
  (sql) => `select t.status, t.turns, t.interrupts,
    (${recent(`r.metadata ->> '${CLIENT_RUN_ID}' = ${sql.clientRunId}`)}) as same,
    case when ${sql.answers} is not null
      then (${recent(`r.metadata -> '${ANSWERS}' = ${sql.answers}`)}) end as answering,
    (${ONE} and r.status = 'running' limit 1) as running,
    (${ONE} and r.status = 'pending' ${NEWEST}) as pending,
    (${ONE} ${NEWEST}) as newest
  from threadloom.threads t where t.thread_id = ${sql.threadId} and ${sql.visible}`,
);

interface ThreadRunsRow extends Omit<ThreadRuns, "interrupts"> {
  status: ThreadStatus;
  interrupts: JsonObject;
}

export const createAgUiRepository = (database: Database) => ({
  /** Undefined for a missing or hidden thread. */
  async threadRuns(
    visibility: Visibility<"threads">,
    threadId: string,
    { clientRunId, answers }: Asked,
  ): Promise<ThreadRuns | undefined> {
    const [row] = await THREAD_RUNS.query<ThreadRunsRow>(database, {
      threadId,
      clientRunId,
      answers: answers === undefined ? null : JSON.stringify(answers),
      visible: visibility.on("t.metadata"),
    });
    if (row === undefined) return undefined;
    const { status, interrupts: stored, ...runs } = row;
    const waits = status === "interrupted" && row.running === null && row.pending === null;
    if (!waits) return { ...runs, interrupts: [] };
    const { interrupts } = database.encryption.decrypted(
      "threads",
      { interrupts: stored },
      { thread_id: threadId },
    );
    return { ...runs, interrupts: Object.values(interrupts).flat() as unknown as Interrupt[] };
  },
});
