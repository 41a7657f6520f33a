import { isObject } from "../parts/is-object.ts";
import { statusOf } from "../server/api-error.ts";
import { messageOf, type Connection } from "../server/connection.tsx";

export interface AnsweredThread {
  thread_id: string;
  state_updated_at: string;
  metadata: Record<string, unknown> | null;
}

const NOT_SENT = "Your answer was not sent.";

/** The value that `interrupt(…)` returns, or all by their ids. */
const resumeOf = (responses: Record<string, unknown>): unknown => {
  const ids = Object.keys(responses);
  return ids.length === 1 && ids[0] === "" ? responses[""] : responses;
};

const assistantOf = async (
  { client }: Connection,
  { thread_id, metadata }: AnsweredThread,
): Promise<string> => {
  const named = [metadata?.["assistant_id"], metadata?.["graph_id"]].find(
    (id) => typeof id === "string" && id !== "",
  );
  if (typeof named === "string") return named;
  const [last] = await client.runs.list(thread_id, { limit: 1 });
  if (last === undefined) throw new Error(`No assistant has run this thread. ${NOT_SENT}`);
  return last.assistant_id;
};

const explain = (error: unknown): Error => {
  const message = messageOf(error);
  switch (statusOf(error)) {
    case 404:
      return new Error(`The thread or its assistant was deleted. ${NOT_SENT}`);
    case 409:
      return new Error(
        `Another run of this thread has begun. ${NOT_SENT} Open the thread to see what it does.`,
      );
    case 422:
      return new Error(`The server refused the answer: ${message}`);
    default:
      return error instanceof Error ? error : new Error(message);
  }
};

/**
 * Starts the run that continues the thread.
 * @param responses by interrupt id; undefined: the thread stopped at a breakpoint
 * @throws Error in words, if the thread no longer waits for this answer
 */
export const sendAnswer = async (
  connection: Connection,
  thread: AnsweredThread,
  responses: Record<string, unknown> | undefined,
): Promise<void> => {
  const { thread_id } = thread;
  try {
    const [now] = await connection.request<{ status?: string; state_updated_at?: string }[]>(
      "POST",
      "/threads/search",
      { ids: [thread_id], select: ["status", "state_updated_at"], limit: 1 },
    );
    if (!isObject(now)) throw new Error(`The thread was deleted. ${NOT_SENT}`);
    if (now.status !== "interrupted" || now.state_updated_at !== thread.state_updated_at)
      throw new Error(`Somebody else has answered already. ${NOT_SENT}`);
    await connection.request("POST", `/threads/${encodeURIComponent(thread_id)}/runs`, {
      assistant_id: await assistantOf(connection, thread),
      ...(responses === undefined ? { input: null } : { command: { resume: resumeOf(responses) } }),
      // Another client may answer in this moment.
      multitask_strategy: "reject",
      ...(responses !== undefined && { strict_resume: true }),
    });
  } catch (error) {
    throw explain(error);
  }
};
