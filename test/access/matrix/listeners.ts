import WebSocket from "ws";

/** A stream or socket that one user has open on a thread, with everything that it has received. */
export interface Listener {
  what: string;
  threadId: string;
  received(): string;
  /** A run that must still appear in the received text. */
  owed: string | undefined;
  /** True if the thread belonged to the user when the stream was opened, and is still the same thread. */
  isOwn: boolean;
  close(): void;
}

interface Listening {
  url: string;
  threadId: string;
  headers: Record<string, string>;
  isOwn: boolean;
}

const EVERYTHING = ["values", "updates", "messages", "tools", "lifecycle", "input", "checkpoints", "custom"];

/** Subscribes over a WebSocket; resolves when the subscription is answered. */
export const listenBySocket = async ({ url, threadId, headers, isOwn }: Listening): Promise<Listener> => {
  const socket = new WebSocket(`${url.replace("http", "ws")}/threads/${threadId}/stream/events`, { headers });
  let received = "";
  await new Promise<void>((resolve, reject) => {
    socket.on("message", (data) => {
      received += String(data as Buffer);
      resolve();
    });
    socket.on("open", () =>
      socket.send(
        JSON.stringify({ id: 1, method: "subscription.subscribe", params: { channels: EVERYTHING } }),
      ),
    );
    socket.on("error", reject);
  });
  return {
    what: "a WebSocket",
    ...{ threadId, isOwn, owed: undefined },
    received: () => received,
    close: () => socket.terminate(),
  };
};

/** Subscribes over server-sent events; undefined, with the answer, if it is refused. */
export const listenByEvents = async (
  { url, threadId, headers, isOwn }: Listening,
  path: "/stream" | "/stream/events",
): Promise<{ listener: Listener } | { listener: undefined; status: number; text: string }> => {
  const leaving = new AbortController();
  const isProtocol = path === "/stream/events";
  const answer = await fetch(`${url}/threads/${threadId}${path}`, {
    method: isProtocol ? "POST" : "GET",
    headers: { ...headers, ...(isProtocol ? { "content-type": "application/json" } : {}) },
    ...(isProtocol ? { body: JSON.stringify({ channels: EVERYTHING }) } : {}),
    signal: leaving.signal,
  });
  if (answer.status !== 200) return { listener: undefined, status: answer.status, text: await answer.text() };
  let received = "";
  const read = async (): Promise<void> => {
    const decoder = new TextDecoder();
    for await (const piece of answer.body ?? [])
      received += decoder.decode(piece as Uint8Array, { stream: true });
  };
  // The reader closes this stream, or the server does when the thread is deleted.
  void read().catch(() => undefined);
  return {
    listener: {
      what: path,
      ...{ threadId, isOwn, owed: undefined },
      received: () => received,
      close: () => leaving.abort(),
    },
  };
};
