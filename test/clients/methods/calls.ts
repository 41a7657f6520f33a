import type { Client } from "@langchain/langgraph-sdk";

/**
 * One call of each public method, by its name on the client (`threads.create`), with a check of the result. Each creates its own data.
 * Types are those of one line of the SDK; methods that another line lacks are not called there.
 */
export type Calls = Record<string, (client: Client) => Promise<void>>;

export const HELLO = { messages: [{ role: "user", content: "hello" }] };
export const LONG = { input: { messages: [], milliseconds: 600_000 } };
export const TWO_STEP_TEXTS = ["hello", "first", "second"];

export const textsOf = (values: unknown): unknown[] =>
  (values as { messages: { content: unknown }[] }).messages.map(({ content }) => content);

/** The HTTP status of a refused call; undefined if it is accepted. */
export const refusalOf = (call: Promise<unknown>): Promise<number | undefined> =>
  call.then(
    () => undefined,
    (error: { status?: number }) => error.status,
  );

export const aThread = async (client: Client, fields: object = {}): Promise<string> =>
  (await client.threads.create(fields)).thread_id;

/** A thread with an ended run of `two-step`. */
export const aThreadWithState = async (client: Client): Promise<string> => {
  const threadId = await aThread(client);
  await client.runs.wait(threadId, "two-step", { input: HELLO });
  return threadId;
};

export const aLongRun = async (client: Client): Promise<{ threadId: string; runId: string }> => {
  const threadId = await aThread(client);
  const { run_id: runId } = await client.runs.create(threadId, "sleep", LONG);
  return { threadId, runId };
};
