import { markedOfGraph } from "../../platform/lib/contents.ts";
import type { StateSnapshot } from "@langchain/langgraph";
import type { CheckpointStorage } from "../../state/checkpoints/types.ts";
import type { ExecutedRunRow } from "../../platform/database/tables.ts";
import type { Database } from "../../platform/database/database.ts";
import type { Graphs } from "../../graphs/graphs.ts";
import { withoutAnswered } from "../../graphs/pending-writes.ts";
import type { RunnableGraph } from "../../graphs/runnable-graph.ts";
import { retryPassing } from "../../platform/database/passing-faults.ts";
import { ObjectStoreError } from "../../platform/domain/errors.ts";
import { errorForClients } from "../../platform/domain/error-for-clients.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import { within } from "../../platform/lib/within.ts";
import { toWireJson } from "../../state/values/wire-json.ts";
import type { GraphResult } from "../executors/executor.ts";
import type { ResumeRefusal } from "../executors/strict-resume.ts";
import type { RunOutcome } from "../queue/attempts.ts";
import type { RunKwargs } from "../queue/kwargs.ts";
import { graphConfiguration } from "../executors/run-options.ts";

export interface OutcomesParts {
  database: Pick<Database, "isLoss">;
  graphs: Graphs;
  checkpoints: CheckpointStorage;
  timeoutSecondsOf(graphId: string): number;
  readWithinMs?: number;
  logger: Logger;
}

/**
 * Reading a thread's state runs user code, which may hang and keep the end from being stored. Exceeds the
 * connection time-out, so an unreachable database is not mistaken for a hang.
 */
const READ_WITHIN_MS = 15_000;
/** Then the run ends without what its thread's state would say. */
const OBJECT_STORE_PATIENCE_MS = 60_000;

const sentenceOf = ({ interrupt_ids: [id, ...others] }: ResumeRefusal): string =>
  id === undefined
    ? "The thread waits for no answer."
    : `Interrupt '${id}'${others.length === 0 ? "" : ` (and ${others.length} more)`} does not wait for an answer.`;

const idsIn = (interrupts: string): ReadonlySet<unknown> =>
  new Set((JSON.parse(interrupts) as { id?: string }[]).map(({ id }) => id));

/** A run from an earlier checkpoint at which nothing is due stores nothing: what waits at the newest one goes on waiting. */
const mayLeaveNewest = ({ kwargs }: ExecutedRunRow): boolean =>
  (kwargs as unknown as RunKwargs).checkpoint !== undefined;

export const createOutcomes = ({
  database,
  graphs,
  checkpoints,
  timeoutSecondsOf,
  readWithinMs = READ_WITHIN_MS,
  logger,
}: OutcomesParts) => {
  const stateOf = async (
    run: ExecutedRunRow,
  ): Promise<StateSnapshot & Pick<RunnableGraph, "outputChannels">> => {
    const { configurable, context } = graphConfiguration(run);
    const configuration = { configurable, context };
    const read = async () => {
      const checkpointer = checkpoints.saverForRead((tuple) => Promise.resolve(withoutAnswered(tuple)));
      const graph = await graphs.resolve(run.graph_id, configuration, { checkpointer });
      const state = await graph.getState({ configurable: { thread_id: run.thread_id } });
      return { ...state, outputChannels: graph.outputChannels };
    };
    const after = (error: unknown): boolean => error instanceof ObjectStoreError;
    return await retryPassing(() => within(readWithinMs, read()), { forMs: OBJECT_STORE_PATIENCE_MS, after });
  };

  const readThreadState = async (
    run: ExecutedRunRow,
    asked: ReadonlySet<unknown>,
  ): Promise<Pick<RunOutcome, "threadStatus" | "interrupts">> => {
    const state = await stateOf(run);
    const waiting = (state.tasks as { id: string; interrupts?: { id?: string }[] }[]).filter(
      ({ interrupts = [] }) =>
        interrupts.length > 0 && (asked.size === 0 || interrupts.some(({ id }) => asked.has(id))),
    );
    return {
      // A task that asks its second question is missing in `next`.
      threadStatus: state.next.length > 0 || waiting.length > 0 ? "interrupted" : "idle",
      interrupts: toWireJson(Object.fromEntries(waiting.map((task) => [task.id, task.interrupts]))),
    };
  };

  /**
   * `asked`: what the run asked at the newest checkpoint. A task that an answer has ended without a write looks as if it
   * still waited.
   */
  const threadStateOf = async (
    run: ExecutedRunRow,
    threadStatus: RunOutcome["threadStatus"],
    asked: ReadonlySet<unknown> = new Set(),
  ): Promise<Pick<RunOutcome, "threadStatus" | "interrupts">> => {
    try {
      return await readThreadState(run, asked);
    } catch (error) {
      // A factory's own unreachable database must not keep the run from ending.
      if (database.isLoss(error) && !(error instanceof ObjectStoreError)) throw error;
      logger.warn(
        { err: markedOfGraph(error), run_id: run.run_id },
        "the pending interrupts of a thread could not be read",
      );
      return { threadStatus, interrupts: "{}" };
    }
  };

  /**
   * Undefined without values, or if the graph's code fails or hangs. Throws if the database is unreachable.
   */
  const valuesOf = async (run: ExecutedRunRow, isInterrupted: boolean): Promise<string | undefined> => {
    try {
      const { values, outputChannels } = await stateOf(run);
      // A function's values are what an earlier run returned.
      return isInterrupted && typeof outputChannels === "string" ? "{}" : toWireJson(values);
    } catch (error) {
      if (database.isLoss(error) && !(error instanceof ObjectStoreError)) throw error;
      logger.warn(
        { err: markedOfGraph(error), run_id: run.run_id },
        "the values of a run that ended could not be read",
      );
      return undefined;
    }
  };

  /** Throws if the database is unreachable. */
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
            ? {
                ...(await threadStateOf(
                  run,
                  "interrupted",
                  mayLeaveNewest(run) ? undefined : idsIn(result.interrupts()),
                )),
                threadStatus: "interrupted",
              }
            : mayLeaveNewest(run)
              ? await threadStateOf(run, "idle")
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
