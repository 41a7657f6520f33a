import { THE_SERVER } from "../../../access/caller.ts";
import type { Visibility } from "../../../access/visibility.ts";
import type { Database } from "../../../platform/database/database.ts";
import type { WhenLarge } from "../../../platform/lib/large-answers.ts";
import type { ThreadService } from "../../threads/service.ts";
import { isPassing, retryPassing } from "../../../platform/database/passing-faults.ts";
import type { RunRow } from "../../../platform/database/tables.ts";
import type { Signals } from "../../../platform/database/signals.ts";
import type { Endings } from "../../../engine/endings.ts";
import type { RunEnding } from "../../../engine/attempt/conclusion.ts";
import type { Execution } from "../../../engine/attempt/execution.ts";
import type { Worker } from "../../../engine/worker/worker.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import { toWireJson } from "../../../state/values/wire-json.ts";
import { announceReader } from "../../../engine/queue/sql/announce-reader.ts";
import { isTerminal } from "../record.ts";
import type { AwaitedRunRow, RunRepository, RunSelector } from "../repository.ts";

/** A run that was created, and its execution if it started in this process at once. */
export interface CreatedRun {
  row: RunRow;
  execution: Execution | undefined;
}

export interface RunResultsParts {
  database: Database;
  repository: RunRepository;
  worker: Worker;
  endings: Endings;
  signals: Signals;
  processId: string;
  /**
   * For whoever waits: what is awaited was visible when it was asked for, and must not seem to be gone because its
   * thread has become another's meanwhile.
   */
  everyThread: Visibility<"threads">;
  threads: {
    states: Pick<ThreadService["states"], "valuesOfRun">;
    upkeep: Pick<ThreadService["upkeep"], "prune">;
  };
}

/** Who waits for a result. */
export interface ResultReadOptions {
  /** Aborts when nobody waits any more. */
  signal: AbortSignal;
  /** Awaited before a large result is read from the thread's state. */
  whenLarge: WhenLarge;
}

interface WaitOptions {
  /** The run's execution in this process, if it is executed here. */
  execution?: Execution | undefined;
  known?: AwaitedRunRow;
  signal?: AbortSignal | undefined;
}

/** What waits on a thread, of all its tasks, as a JSON list; undefined if nothing does. */
const listOf = (interrupts: JsonObject): string | undefined => {
  const all = Object.values(interrupts).flat();
  return all.length === 0 ? undefined : toWireJson(all);
};

/** How long an ended run's result waits for a database that is away; longer than a failover takes. */
const RESULT_SECONDS = 60;

/** Waiting for the end of runs, wherever they are executed, and what wait and join answer. */
export const createRunResults = ({
  database,
  repository,
  worker,
  endings,
  signals,
  processId,
  everyThread,
  threads,
}: RunResultsParts) => {
  /**
   * Resolves when the run has ended; undefined if its row is gone (rolled back, deleted, or threadless). `known`: its
   * row from this very moment, which saves a look. Rejects with the reason of `signal` when that aborts: a run may wait
   * for months, and who has left must not look at it every second until then.
   */
  const waitForEnd = async (
    selector: RunSelector,
    { execution = worker.execution(selector.runId), known, signal }: WaitOptions = {},
  ): Promise<RunEnding | AwaitedRunRow | undefined> => {
    execution?.wantValues();
    const here = await execution?.ended;
    if (here !== undefined) return here;
    for (let first = execution === undefined ? known : undefined; ; first = undefined) {
      signal?.throwIfAborted();
      const wait = endings.wait(selector.runId);
      try {
        // The run is stored: a refusal while the database is away would make the client store another.
        const row = first ?? (await repository.findAwaited(everyThread, selector));
        if (row === undefined || isTerminal(row.status)) return row;
        const isElsewhere = row.status === "running" && row.worker_id !== processId;
        if (row.delete_thread && isElsewhere && row.reader_id !== processId) {
          await announceReader(database, selector, processId);
        }
        if (isElsewhere) signals.send({ kind: "awaited", ...selector });
        const news = await wait.news;
        if (typeof news === "object") return news;
      } catch (error) {
        if (!isPassing(error)) throw error;
        await wait.news;
      } finally {
        wait.cancel();
      }
    }
  };

  const makeAnswer = async (
    selector: RunSelector,
    ended: RunEnding | AwaitedRunRow | undefined,
    whenLarge: WhenLarge,
  ): Promise<string> => {
    if (ended === undefined || ended.status === "rolled-back") {
      return JSON.stringify({ __error__: { error: "RunRolledBack", message: "The run was rolled back." } });
    }
    if (ended.error !== null) return JSON.stringify({ __error__: ended.error });
    const here = "values" in ended ? ended : undefined;
    let values = here?.values();
    let interrupts = here?.interrupts?.();
    if (values === undefined) {
      const left = await threads.states.valuesOfRun(everyThread, selector, whenLarge);
      values = left.values ?? "{}";
      // What a thread asks that has gone on is another run's question.
      if (here === undefined && left.isHead)
        interrupts = listOf(await repository.interrupts(everyThread, selector.threadId));
    }
    if (interrupts === undefined) return values;
    const fields = values.startsWith("{") && values !== "{}" ? `${values.slice(0, -1)},` : "{";
    return `${fields}"__interrupt__":${interrupts}}`;
  };

  /** The body that wait and join answer, as JSON. The run is stored: a refusal would make old clients repeat it. */
  const answer = (
    selector: RunSelector,
    ended: RunEnding | AwaitedRunRow | undefined,
    whenLarge: WhenLarge,
  ): Promise<string> =>
    retryPassing(() => makeAnswer(selector, ended, whenLarge), { forMs: RESULT_SECONDS * 1_000 });

  /**
   * Removes an ended threadless run that came through the queue and was kept for its creator, who is through with
   * it now. One that another process reads is left to the sweep; one that started at once has removed itself.
   */
  const forget = async ({ row, execution }: CreatedRun): Promise<void> => {
    if (!row.delete_thread || execution !== undefined) return;
    try {
      const left = await repository.find(everyThread, { threadId: row.thread_id, runId: row.run_id });
      if (left === undefined || !isTerminal(left.status)) return;
      if (left.reader_id !== null && left.reader_id !== processId) return;
      await threads.upkeep.prune(THE_SERVER, { thread_ids: [row.thread_id], strategy: "delete" });
    } catch {
      // The sweep removes it. A refusal now would make the client repeat a run that was successful.
    }
  };

  return { waitForEnd, answer, forget };
};

export type RunResults = ReturnType<typeof createRunResults>;
