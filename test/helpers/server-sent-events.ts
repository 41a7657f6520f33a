/** An event of a stream in a client's form. */
export interface SentEvent<Data = unknown> {
  /** Undefined if the frame has no `id:` line. */
  id: number | undefined;
  event: string;
  data: Data;
  frame: string;
}

export interface OpenStreamOptions {
  method?: "GET" | "POST";
  body?: unknown;
  headers?: Record<string, string>;
}

export interface EventStream {
  readonly status: number;
  readonly headers: Headers;
  /** All events so far, including those that `next` and `until` have returned. */
  readonly seen: SentEvent[];
  /** Comments so far, without their colon. */
  readonly comments: string[];
  /** The next event; undefined at a clean end of the stream. Throws if the connection is cut. */
  next(): Promise<SentEvent | undefined>;
  /** Reads up to the first event that `matches`, and returns it; throws if the stream ends before. */
  until(matches: (event: SentEvent) => boolean): Promise<SentEvent>;
  /** Reads up to the first comment; throws if the stream ends before. */
  comment(): Promise<string>;
  /** Reads up to the clean end and returns every event. */
  rest(): Promise<SentEvent[]>;
  /** Disconnects, like a closed browser. */
  close(): void;
}

const parseFrame = (frame: string): SentEvent => {
  const field = (name: string): string | undefined =>
    frame
      .split("\n")
      .find((line) => line.startsWith(`${name}: `))
      ?.slice(name.length + 2);
  const id = field("id");
  return {
    id: id === undefined ? undefined : Number(id),
    event: field("event") ?? "message",
    data: JSON.parse(field("data") ?? "") as unknown,
    frame,
  };
};

/** Opens a stream of server-sent events and reads it on demand, so a test controls the speed of its reader. */
export const openStream = async (url: string, options: OpenStreamOptions = {}): Promise<EventStream> => {
  const abort = new AbortController();
  const response = await fetch(url, {
    method: options.method ?? (options.body === undefined ? "GET" : "POST"),
    headers: {
      accept: "text/event-stream",
      ...(options.body === undefined ? {} : { "content-type": "application/json" }),
      ...options.headers,
    },
    ...(options.body === undefined ? {} : { body: JSON.stringify(options.body) }),
    signal: abort.signal,
  });
  if (!response.ok) {
    throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  }
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  const seen: SentEvent[] = [];
  const comments: string[] = [];
  let text = "";

  /** The next whole frame, or a comment line, which no blank line follows. */
  const frame = async (): Promise<string | undefined> => {
    for (;;) {
      if (text.startsWith("\n")) throw new Error("A blank line stands where no frame ends.");
      const terminator = text.startsWith(":") ? "\n" : "\n\n";
      const end = text.indexOf(terminator);
      if (end !== -1) {
        const whole = text.slice(0, end);
        text = text.slice(end + terminator.length);
        return whole;
      }
      const { done, value } = await reader.read();
      if (done) {
        if (text.trim() !== "") throw new Error(`The stream ended inside a frame: ${JSON.stringify(text)}`);
        return undefined;
      }
      text += decoder.decode(value, { stream: true });
    }
  };
  const advance = async (): Promise<SentEvent | string | undefined> => {
    const whole = await frame();
    if (whole === undefined) return undefined;
    if (whole.startsWith(":")) {
      comments.push(whole.slice(1).trim());
      return whole;
    }
    const event = parseFrame(whole);
    seen.push(event);
    return event;
  };
  const next = async (): Promise<SentEvent | undefined> => {
    for (;;) {
      const found = await advance();
      if (typeof found !== "string") return found;
    }
  };
  return {
    status: response.status,
    headers: response.headers,
    seen,
    comments,
    next,
    async until(matches) {
      for (;;) {
        const event = await next();
        if (event === undefined)
          throw new Error(`The stream ended after ${JSON.stringify(seen.map((e) => e.event))}.`);
        if (matches(event)) return event;
      }
    },
    async comment() {
      for (;;) {
        const found = await advance();
        if (typeof found === "string") return comments.at(-1) ?? "";
        if (found === undefined) throw new Error("The stream ended without a comment.");
      }
    },
    async rest() {
      while ((await next()) !== undefined);
      return seen;
    },
    close: () => abort.abort(),
  };
};

export const readStream = async (url: string, options?: OpenStreamOptions): Promise<SentEvent[]> =>
  await (await openStream(url, options)).rest();

export const namesOf = (events: readonly SentEvent[]): string[] => events.map(({ event }) => event);

export const dataOf = <Data = Record<string, unknown>>(events: readonly SentEvent[], name: string): Data[] =>
  events.filter(({ event }) => event === name).map(({ data }) => data as Data);
