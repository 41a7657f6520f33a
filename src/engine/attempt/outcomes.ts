import { ofGraph } from "../../platform/lib/contents.ts";
import type { StateSnapshot } from "@langchain/langgraph";
import type { CheckpointStorage } from "../../state/checkpoints/types.ts";
import type { ExecutedRunRow } from "../../platform/database/tables.ts";
import type { Database } from "../../platform/database/database.ts";
import type { Graphs } from "../../graphs/graphs.ts";
import { errorForClients } from "../executors/error-for-clients.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { within } from "../../platform/lib/within.ts";
import { toWireJson } from "../../state/values/wire-json.ts";
import type { GraphResult } from "../executors/executor.ts";
import type { ResumeRefusal } from "../executors/strict-resume.ts";
import type { RunOutcome } from "../queue/attempts.ts";
import { graphConfiguration } from "../executors/run-options.ts";

export interface OutcomesParts {
  database: Pick<Database, "isLoss">;
  graphs: Graphs;
  checkpoints: CheckpointStorage;
  /** Seconds that a run of a graph may take. */
  timeoutSecondsOf(graphId: string): number;
  /** See READ_WITHIN_MS. */
  readWithinMs?: number;
  logger: Logger;
}

/**
 * The state of a thread is read by its graph, which a factory may have to make first: users' code, and perhaps what kept the run
 * from ending in its time. It must not keep its end from being stored as well: heartbeats would renew the lease for ever. Longer
 * than a connection to the database is waited for, so that a database that is away is told from users' code that hangs.
 */
const READ_WITHIN_MS = 15_000;

const sentenceOf = ({ interrupt_ids: [id, ...others] }: ResumeRefusal): string =>
  id === undefined
    ? "The thread waits for no answer."
    : `Interrupt '${id}'${others.length === 0 ? "" : ` (and ${others.length} more)`} does not wait for an answer.`;

interface TaskWithInterrupts {
  id: string;
  interrupts?: unknown[];
}

/** From what became of a graph's execution to what is stored of it. */
export const createOutcomes = ({
  database,
  graphs,
  checkpoints,
  timeoutSecondsOf,
  readWithinMs = READ_WITHIN_MS,
  logger,
}: OutcomesParts) => {
  const stateOf = async (run: ExecutedRunRow): Promise<StateSnapshot> => {
    const { configurable, context } = graphConfiguration(run);
    const configuration = { configurable, context };
    const read = async (): Promise<StateSnapshot> => {
      const graph = await graphs.resolve(run.graph_id, configuration, { checkpointer: checkpoints.saver });
      return await graph.getState({ configurable: { thread_id: run.thread_id } });
    };
    return await within(readWithinMs, read());
  };

  /** What the head checkpoint waits for; needs a read, so only where the graph's stream does not tell. */
  const readThreadState = async (
    run: ExecutedRunRow,
  ): Promise<Pick<RunOutcome, "threadStatus" | "interrupts">> => {
    const state = await stateOf(run);
    const waiting = (state.tasks as TaskWithInterrupts[]).filter(
      (task) => (task.interrupts?.length ?? 0) > 0,
    );
    return {
      threadStatus: state.next.length > 0 ? "interrupted" : "idle",
      interrupts: toWireJson(Object.fromEntries(waiting.map((task) => [task.id, task.interrupts]))),
    };
  };

  /** The same, but a run ends whatever its graph's code does: a factory may throw or hang, a graph be gone by now. */
  const threadStateOf = async (
    run: ExecutedRunRow,
    threadStatus: RunOutcome["threadStatus"],
  ): Promise<Pick<RunOutcome, "threadStatus" | "interrupts">> => {
    try {
      return await readThreadState(run);
    } catch (error) {
      // Ours alone: a factory whose own database is away would keep the run from ending for ever.
      if (database.isLoss(error)) throw error;
      logger.warn({ err: ofGraph(error), run_id: run.run_id }, "what a thread waits for could not be read");
      return { threadStatus, interrupts: "{}" };
    }
  };

  /**
   * JSON of the values of a thread at the end of its run; undefined if it has none, or if the code of its graph does not
   * let them be read, or not in time. Throws if the database is away.
   */
  const valuesOf = async (run: ExecutedRunRow): Promise<string | undefined> => {
    try {
      return toWireJson((await stateOf(run)).values);
    } catch (error) {
      if (database.isLoss(error)) throw error;
      logger.warn(
        { err: ofGraph(error), run_id: run.run_id },
        "the values of a run that ended could not be read",
      );
      return undefined;
    }
  };

  /** What an attempt's result means for the run and its thread. Throws if the database is away. */
  const of = async (run: ExecutedRunRow, result: GraphResult): Promise<RunOutcome> => {
    const failed = (status: "error" | "timeout", error: JsonObject): RunOutcome => ({
      status,
      error,
      threadStatus: "error",
      interrupts: "{}",
    });
    switch (result.kind) {
      case "completed":
        return {
          status: "success",
          error: null,
          ...(result.interrupts !== undefined
            ? { ...(await threadStateOf(run, "interrupted")), threadStatus: "interrupted" }
            : { threadStatus: "idle", interrupts: "{}" }),
        };
      case "failed":
        return failed("error", errorForClients(result.error));
      case "refused":
        return {
          status: "error",
          error: { error: "UnknownInterruptError", message: sentenceOf(result.refusal), ...result.refusal },
          threadStatus: "unchanged",
          interrupts: "{}",
        };
      case "stopped":
        if (result.reason.kind === "timeout") {
          return failed("timeout", {
            error: "RunTimeoutError",
            message: `The run did not end within ${timeoutSecondsOf(run.graph_id)} seconds.`,
          });
        }
        return { status: "interrupted", error: null, ...(await threadStateOf(run, "idle")) };
    }
  };

  return { of, valuesOf };
};

export type Outcomes = ReturnType<typeof createOutcomes>;
