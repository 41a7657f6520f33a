import type { RunRecord } from "../../src/api/runs/schemas.ts";
import { eventually } from "./conditions.ts";

export interface Answer<Body> {
  status: number;
  headers: Headers;
  text: string;
  body: Body;
}

export interface Message {
  id?: string;
  type: string;
  content: unknown;
}

export interface ThreadRecord {
  thread_id: string;
  status: "idle" | "busy" | "interrupted" | "error";
  metadata: Record<string, unknown>;
  values: (Record<string, unknown> & { messages?: Message[] }) | null;
  interrupts: Record<string, { id: string; value: unknown }[]>;
  error?: { error: string; message: string } | null;
  updated_at: string;
}

export interface StateRecord {
  values: Record<string, unknown> & { messages?: Message[] };
  next: string[];
  tasks: { id: string; name: string; interrupts: { id: string; value: unknown }[] }[];
  metadata: Record<string, unknown>;
  checkpoint: { thread_id: string; checkpoint_ns: string; checkpoint_id: string } | null;
  parent_checkpoint: { checkpoint_id: string } | null;
}

export interface Refusal {
  detail: string;
}

/** The final values of a run in the answers of wait and join. */
export type Result = Record<string, unknown> & {
  messages?: Message[];
  __error__?: { error: string; message: string };
  __interrupt__?: { id: string; value: unknown }[];
};

/** The API of a server, for tests that act like a user with curl. */
export const apiOf = ({ url }: { url: string }) => {
  const request = async <Body>(method: string, path: string, body?: unknown): Promise<Answer<Body>> => {
    const response = await fetch(`${url}${path}`, {
      method,
      ...(body === undefined
        ? {}
        : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      text,
      body: (text.trim() === "" ? undefined : JSON.parse(text)) as Body,
    };
  };
  /** For requests that a test needs but does not test. */
  const must = async <Body>(answer: Promise<Answer<Body>>): Promise<Body> => {
    const { status, text, body } = await answer;
    if (status >= 300) throw new Error(`The server answered ${status}: ${text}`);
    return body;
  };
  const get = <Body>(path: string) => request<Body>("GET", path);
  const post = <Body>(path: string, body?: unknown) => request<Body>("POST", path, body);

  const api = {
    url,
    get,
    post,
    patch: <Body>(path: string, body: unknown) => request<Body>("PATCH", path, body),
    remove: (path: string) => request<Refusal | undefined>("DELETE", path),

    async aThread(fields: object = {}): Promise<string> {
      return (await must(post<ThreadRecord>("/threads", fields))).thread_id;
    },
    aRun: (threadId: string, fields: object): Promise<RunRecord> =>
      must(post<RunRecord>(`/threads/${threadId}/runs`, fields)),
    /** Creates a run and waits for its end; returns the result. */
    aFinishedRun: (threadId: string, fields: object): Promise<Result> =>
      must(post<Result>(`/threads/${threadId}/runs/wait`, fields)),
    thread: (threadId: string): Promise<ThreadRecord> => must(get<ThreadRecord>(`/threads/${threadId}`)),
    state: (threadId: string): Promise<StateRecord> => must(get<StateRecord>(`/threads/${threadId}/state`)),
    history: (threadId: string): Promise<StateRecord[]> =>
      must(post<StateRecord[]>(`/threads/${threadId}/history`, { limit: 1000 })),
    run: (threadId: string, runId: string): Promise<RunRecord> =>
      must(get<RunRecord>(`/threads/${threadId}/runs/${runId}`)),
    runs: (threadId: string): Promise<RunRecord[]> =>
      must(get<RunRecord[]>(`/threads/${threadId}/runs?limit=1000`)),
    join: (threadId: string, runId: string): Promise<Result> =>
      must(get<Result>(`/threads/${threadId}/runs/${runId}/join`)),
    cancel: (threadId: string, runId: string, query = "wait=1"): Promise<Answer<Refusal | undefined>> =>
      post(`/threads/${threadId}/runs/${runId}/cancel?${query}`),

    untilRunIs: (threadId: string, runId: string, ...statuses: RunRecord["status"][]): Promise<RunRecord> =>
      eventually(`run ${runId} is ${statuses.join(" or ")}`, async () => {
        const run = await api.run(threadId, runId);
        return statuses.includes(run.status) ? run : undefined;
      }),
    /** Waits until no run of the thread runs or waits. */
    untilQuiet: (threadId: string): Promise<ThreadRecord> =>
      eventually(`thread ${threadId} is no longer busy`, async () => {
        const thread = await api.thread(threadId);
        return thread.status === "busy" ? undefined : thread;
      }),
  };
  return api;
};

export type Api = ReturnType<typeof apiOf>;

export const textsOf = (messages: readonly Message[] | undefined): unknown[] =>
  (messages ?? []).map(({ content }) => content);

export const saying = (text: string) => ({ messages: [{ role: "user", content: text }] });
