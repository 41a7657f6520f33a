import { openStream, type EventStream, type SentEvent } from "../helpers/server-sent-events.ts";

export type Wire = "run streams" | "event streaming";

interface Frame {
  method: string;
  params: { namespace: string[]; data: { event?: string; delta?: { type: string; text?: string } } };
}

const post = async (url: string, body: unknown): Promise<void> => {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  await response.arrayBuffer();
};

/** Starts a run on a thread of its own and the stream of its tokens, over one wire. */
const begin = async (url: string, wire: Wire, assistantId: string, input: object): Promise<EventStream> => {
  const threadUrl = `${url}/threads/${crypto.randomUUID()}`;
  if (wire === "run streams")
    return await openStream(`${threadUrl}/runs/stream`, {
      body: { assistant_id: assistantId, input, stream_mode: ["messages-tuple"], if_not_exists: "create" },
    });
  const stream = await openStream(`${threadUrl}/stream/events`, {
    body: { channels: ["messages", "lifecycle"] },
  });
  await post(`${threadUrl}/commands`, {
    id: 1,
    method: "run.start",
    params: { assistant_id: assistantId, input },
  });
  return stream;
};

const tokenOf = ({ event, data }: SentEvent, wire: Wire): string | undefined => {
  if (event !== "messages") return undefined;
  if (wire === "run streams") return (data as [{ content: string }])[0].content;
  return (data as Frame).params.data.delta?.text;
};

const isEnd = ({ event, data }: SentEvent): boolean => {
  if (event !== "lifecycle") return false;
  const { params } = data as Frame;
  return params.namespace.length === 0 && params.data.event === "completed";
};

const read = async (stream: EventStream, wire: Wire): Promise<string[]> => {
  const tokens: string[] = [];
  for (;;) {
    const event = await stream.next();
    if (event === undefined || isEnd(event)) break;
    if (event.event === "error") throw new Error(`Over ${wire}: ${event.frame}`);
    const token = tokenOf(event, wire);
    if (token !== undefined && token !== "") tokens.push(token);
  }
  stream.close();
  return tokens;
};

/** All streams at the same time; throws unless each thread's tokens arrive once and in order. */
export const tokensPerSecond = async (
  url: string,
  wire: Wire,
  threads: number,
  tokensEach: number,
): Promise<number> => {
  const started = performance.now();
  await Promise.all(
    Array.from({ length: threads }, async () => {
      const stream = await begin(url, wire, "tokens", { messages: [], tokens: tokensEach });
      const tokens = await read(stream, wire);
      const wanted = Array.from({ length: tokensEach }, (_, index) => `t${index} `);
      if (tokens.join() !== wanted.join())
        throw new Error(
          `Over ${wire} came ${tokens.length} tokens; ${stream.seen.at(-1)?.frame ?? "no event"}`,
        );
    }),
  );
  return (threads * tokensEach * 1_000) / (performance.now() - started);
};

/** Milliseconds between a model's first token and its arrival here, of one run after the other. */
export const firstTokenLags = async (url: string, wire: Wire, runs: number): Promise<number[]> => {
  const lags: number[] = [];
  for (let index = 0; index < runs; index += 1) {
    const stream = await begin(url, wire, "clock", { messages: [] });
    const first = await stream.until((event) => (tokenOf(event, wire) ?? "") !== "");
    lags.push(Date.now() - Number(tokenOf(first, wire)));
    await read(stream, wire);
  }
  return lags;
};
