import { THE_SERVER, type Caller } from "../../../access/caller.ts";
import type { Visibility } from "../../../access/visibility.ts";
import type { Database } from "../../../platform/database/database.ts";
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
import { untilAborted } from "../../../platform/lib/until-aborted.ts";

/** `execution`: set if the run started in this process. */
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
  /** A run must not seem deleted when its thread becomes hidden during the wait. */
  everyThread: Visibility<"threads">;
  threads: {
    states: Pick<ThreadService["states"], "valuesOfRun">;
    upkeep: Pick<ThreadService["upkeep"], "prune">;
  };
}

export interface ResultReadOptions {
  signal: AbortSignal;
  caller: Caller;
}

export interface RunResult {
  /** `rolled-back` also if the run is gone. */
  status: RunRow["status"] | "rolled-back";
  /** JSON of the final values, with `__interrupt__` for pending interrupts, or `__error__` alone. */
  text: string;
  /** Of the values: see `outputKeysOf`. */
  outputKeys: readonly string[] | undefined;
}

type Answer = Pick<RunResult, "text" | "outputKeys">;

interface WaitOptions {
  execution?: Execution | undefined;
  known?: AwaitedRunRow;
  signal?: AbortSignal | undefined;
}

const listOf = (interrupts: JsonObject): string | undefined => {
  const all = Object.values(interrupts).flat();
  return all.length === 0 ? undefined : toWireJson(all);
};

/** Longer than a failover of the database. */
const RESULT_SECONDS = 60;

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
   * Undefined if the run's row is gone (rolled back, deleted or threadless); rejects with the signal's reason. `known`:
   * the current row, which saves a read.
   */
  const waitForEnd = async (
    selector: RunSelector,
    { execution = worker.execution(selector.runId), known, signal }: WaitOptions = {},
  ): Promise<RunEnding | AwaitedRunRow | undefined> => {
    execution?.wantValues();
    const here = execution && (await untilAborted(signal, execution.ended));
    if (here !== undefined) return here;
    for (let first = execution === undefined ? known : undefined; ; first = undefined) {
      signal?.throwIfAborted();
      const wait = endings.wait(selector.runId);
      try {
        // The run is stored: an error would make the client create another run.
        const row = first ?? (await repository.findAwaited(everyThread, selector));
        if (row === undefined || isTerminal(row.status)) return row;
        const isElsewhere = row.status === "running" && row.worker_id !== processId;
        if (row.delete_thread && isElsewhere && row.reader_id !== processId) {
          await announceReader(database, selector, processId);
        }
        if (isElsewhere) signals.send({ kind: "awaited", ...selector });
        const news = await untilAborted(signal, wait.news);
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
    { caller, signal }: ResultReadOptions,
  ): Promise<Answer> => {
    const failed = (error: JsonObject): Answer => ({
      text: JSON.stringify({ __error__: error }),
      outputKeys: undefined,
    });
    if (ended === undefined || ended.status === "rolled-back")
      return failed({ error: "RunRolledBack", message: "The run was rolled back." });
    if (ended.error !== null) return failed(ended.error);
    const here = "values" in ended ? ended : undefined;
    let values = here?.values();
    let interrupts = here?.interrupts?.();
    let outputKeys = here?.outputKeys;
    if (values === undefined) {
      const left = await threads.states.valuesOfRun(everyThread, selector, caller, signal);
      values = left.values ?? "{}";
      ({ outputKeys } = left);
      // Otherwise the thread's interrupts belong to a later run.
      if (here === undefined && left.isHead)
        interrupts = listOf(await repository.interrupts(everyThread, selector.threadId));
      if (interrupts !== undefined && outputKeys === undefined) values = "{}";
    }
    if (interrupts === undefined) return { text: values, outputKeys };
    const fields = values.startsWith("{") && values !== "{}" ? `${values.slice(0, -1)},` : "{";
    return { text: `${fields}"__interrupt__":${interrupts}}`, outputKeys };
  };

  /** Retries: an error would make old clients create the run again. */
  const answer = (
    selector: RunSelector,
    ended: RunEnding | AwaitedRunRow | undefined,
    options: ResultReadOptions,
  ): Promise<Answer> =>
    retryPassing(() => makeAnswer(selector, ended, options), { forMs: RESULT_SECONDS * 1_000 });

  /**
   * Removes an ended threadless run that waited in the queue. Other threadless runs remove themselves, or the sweep
   * removes them.
   */
  const forget = async ({ row, execution }: CreatedRun): Promise<void> => {
    if (!row.delete_thread || execution !== undefined) return;
    try {
      const left = await repository.find(everyThread, { threadId: row.thread_id, runId: row.run_id });
      if (left === undefined || !isTerminal(left.status)) return;
      if (left.reader_id !== null && left.reader_id !== processId) return;
      await threads.upkeep.prune(THE_SERVER, { thread_ids: [row.thread_id], strategy: "delete" });
    } catch {
      // The sweep removes the run. An error would make the client repeat the run.
    }
  };

  return { waitForEnd, answer, forget };
};

export type RunResults = ReturnType<typeof createRunResults>;
