import type { Connection } from "../../server/connection.tsx";
import { withOptions, type RunOptions } from "../composer/run-options.ts";

interface Envelope {
  type: "success" | "error";
  result?: { run_id?: string };
  message?: string;
}

interface RunToStart {
  assistantId: string;
  threadId: string;
  input: unknown;
  checkpointId?: string;
  multitaskStrategy?: "enqueue";
  options: RunOptions;
}

/**
 * Starts a run with the command of event streaming, so that streams of the thread report the run.
 * @returns the run id
 */
export const startRun = async (
  { request }: Connection,
  { assistantId, threadId, input, checkpointId, multitaskStrategy, options }: RunToStart,
): Promise<string> => {
  const answer = await request<Envelope>("POST", `/threads/${threadId}/commands`, {
    id: 1,
    method: "run.start",
    params: withOptions(
      {
        assistant_id: assistantId,
        input,
        ...(checkpointId !== undefined && { config: { configurable: { checkpoint_id: checkpointId } } }),
        ...(multitaskStrategy !== undefined && { multitask_strategy: multitaskStrategy }),
      },
      options,
    ),
  });
  const runId = answer.result?.run_id;
  if (answer.type === "error" || runId === undefined)
    throw new Error(answer.message ?? "The run has not started.");
  return runId;
};

export const stopRuns = async ({ client }: Connection, threadId: string): Promise<void> => {
  const running = await client.runs.list(threadId, { status: "running", limit: 10 });
  await Promise.all(running.map(({ run_id }) => client.runs.cancel(threadId, run_id)));
};

const POLL_MS = 60;
const POLLS_AT_MOST = 200;
const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

interface Head {
  metadata?: { run_id?: string } | null;
}

/**
 * Resolves when the newest checkpoint belongs to the run, the run has ended, or it has waited too long in the
 * queue.
 */
export const waitForHead = async (
  { client, request }: Connection,
  threadId: string,
  runId: string,
): Promise<void> => {
  for (let polls = 1; polls <= POLLS_AT_MOST; polls += 1) {
    const head = await request<Head>("GET", `/threads/${threadId}/state?select=metadata`);
    if (head.metadata?.run_id === runId) return;
    const { status } = await client.runs.get(threadId, runId);
    if (status !== "running" && status !== "pending") return;
    await pause(POLL_MS);
  }
};
