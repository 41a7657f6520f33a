import { afterEach } from "vitest";
import { openStream, type EventStream } from "../../helpers/server-sent-events.ts";

/** A frame as both SDKs read it. */
export interface Frame {
  type: "event";
  event_id: string;
  seq: number;
  method: string;
  params: { namespace: string[]; timestamp: number; node?: string; data: Record<string, unknown> };
}

export interface FrameStream {
  readonly stream: EventStream;
  readonly seen: Frame[];
  /** Reads up to the first frame that matches, and returns it. */
  until(matches: (frame: Frame) => boolean): Promise<Frame>;
  close(): void;
}

export const EVERYTHING = [
  "values",
  "updates",
  "messages",
  "tools",
  "lifecycle",
  "input",
  "checkpoints",
  "tasks",
  "custom",
];

export const openFrames = async (
  url: string,
  threadId: string,
  body: object = { channels: EVERYTHING },
  headers: Record<string, string> = {},
): Promise<FrameStream> => {
  const stream = await openStream(`${url}/threads/${threadId}/stream/events`, {
    method: "POST",
    body,
    headers,
  });
  const seen: Frame[] = [];
  return {
    stream,
    seen,
    async until(matches) {
      for (;;) {
        const event = await stream.next();
        if (event === undefined) throw new Error("The stream has ended cleanly.");
        const frame = event.data as Frame;
        seen.push(frame);
        if (matches(frame)) return frame;
      }
    },
    close: () => stream.close(),
  };
};

/** `openFrames` for the tests of a file: closes a test's connections after the test. */
export const closingFrames = (server: () => { url: string }) => {
  const opened: FrameStream[] = [];
  afterEach(() => {
    for (const stream of opened.splice(0)) stream.close();
  });
  return async (threadId: string, body?: object, headers?: Record<string, string>): Promise<FrameStream> => {
    const stream = await openFrames(server().url, threadId, body, headers);
    opened.push(stream);
    return stream;
  };
};

/** The root's lifecycle event with one of these names. */
export const isRoot =
  (...events: string[]) =>
  ({ method, params }: Frame): boolean =>
    method === "lifecycle" && params.namespace.length === 0 && events.includes(String(params.data["event"]));

export const isInput = ({ method }: Frame): boolean => method === "input.requested";

export interface CommandAnswer {
  type: "success" | "error";
  id: number;
  result?: Record<string, unknown> & { run_id?: string };
  meta?: { thread_id: string; applied_through_seq?: number };
  error?: string;
  message?: string;
}

export const command = async (
  url: string,
  threadId: string,
  method: string,
  params: object,
  headers: Record<string, string> = { "content-type": "application/json" },
): Promise<{ status: number; answer: CommandAnswer }> => {
  const response = await fetch(`${url}/threads/${threadId}/commands`, {
    method: "POST",
    headers,
    body: JSON.stringify({ id: 7, method, params }),
  });
  return { status: response.status, answer: (await response.json()) as CommandAnswer };
};

/** Starts a run with `run.start`; returns its id and the rest of the answer. */
export const started = async (
  url: string,
  threadId: string,
  params: object,
): Promise<{ runId: string; since: number }> => {
  const { status, answer } = await command(url, threadId, "run.start", params);
  if (status !== 200 || answer.type !== "success") throw new Error(JSON.stringify({ status, answer }));
  return { runId: answer.result?.run_id ?? "", since: answer.meta?.applied_through_seq ?? -1 };
};
