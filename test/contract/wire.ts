/** A raw answer, with its body parsed if the type is JSON. */
export interface WireAnswer {
  status: number;
  contentType: string;
  headers: Headers;
  body: unknown;
  text: string;
}

/** Ids and records have no types here, because the contract tests check their shape. */
type Json = Record<string, string> & { [index: number]: Json };

/** Raw requests to a server, and the records that most operations need first. */
export const wireOf = (url: () => string) => {
  /** A `Buffer` is sent as it is. */
  const send = async (
    operation: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<WireAnswer> => {
    const [method, path] = operation.split(" ");
    const response = await fetch(`${url()}${path}`, {
      method,
      ...(body === undefined
        ? { headers }
        : {
            headers: { "content-type": "application/json", ...headers },
            body: Buffer.isBuffer(body) ? body : JSON.stringify(body),
          }),
    });
    const text = await response.text();
    const contentType = response.headers.get("content-type") ?? "";
    const isJson = contentType.startsWith("application/json") && text !== "";
    return {
      status: response.status,
      headers: response.headers,
      contentType,
      text,
      body: isJson ? JSON.parse(text) : text,
    };
  };
  /** For an endless stream: its status and type; then the reader disconnects. */
  const head = async (operation: string, body?: unknown): Promise<WireAnswer> => {
    const [method, path] = operation.split(" ");
    const leave = new AbortController();
    const response = await fetch(`${url()}${path}`, {
      method,
      signal: leave.signal,
      ...(body === undefined
        ? {}
        : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
    });
    const contentType = response.headers.get("content-type") ?? "";
    const isEndless = response.ok && contentType.startsWith("text/event-stream");
    const text = isEndless ? "" : await response.text();
    leave.abort();
    return {
      status: response.status,
      headers: response.headers,
      contentType,
      text,
      body: isEndless ? "" : text,
    };
  };
  const must = async (operation: string, body?: unknown): Promise<Json> => {
    const { status, text, body: answer } = await send(operation, body);
    if (status >= 300) throw new Error(`${operation} answered ${status}: ${text}`);
    return answer as Json;
  };
  const wire = {
    send,
    head,
    must,
    anAssistant: async (fields: object = {}): Promise<string> =>
      (await must("POST /assistants", { graph_id: "agent", ...fields }))["assistant_id"]!,
    aThread: async (fields: object = {}): Promise<string> =>
      (await must("POST /threads", fields))["thread_id"]!,
    aThreadWithState: async (assistant = "two-step"): Promise<string> => {
      const threadId = await wire.aThread();
      await must(`POST /threads/${threadId}/runs/wait`, {
        assistant_id: assistant,
        input: { messages: [{ role: "user", content: "hello" }] },
      });
      return threadId;
    },
    aLongRun: async (threadId: string): Promise<string> =>
      (await must(`POST /threads/${threadId}/runs`, LONG))["run_id"]!,
    aFinishedRun: async (): Promise<{ threadId: string; runId: string }> => {
      const threadId = await wire.aThreadWithState();
      return { threadId, runId: (await must(`GET /threads/${threadId}/runs`))[0]!["run_id"]! };
    },
    cancelAll: () => send("POST /runs/cancel", { status: "all" }),
  };
  return wire;
};

export type Wire = ReturnType<typeof wireOf>;

export const LONG = { assistant_id: "sleep", input: { messages: [], milliseconds: 600_000 } };
export const SHORT = { assistant_id: "two-step", input: { messages: [{ role: "user", content: "hello" }] } };
export const MISSING = "00000000-0000-7000-8000-000000000000";
