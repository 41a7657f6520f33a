import { randomUUID } from "node:crypto";
import type { Request, Sender } from "./send.ts";
import { POISONS } from "./storm.ts";

/** Repeated hostile requests of one caller, while others work. */
export interface Hostility {
  title: string;
  prepare?(sender: Sender): Promise<void>;
  /** Requests that are sent at the same time repeatedly; created once. */
  requests(): Request[];
}

const post = (address: string, body: unknown): Request => ({
  method: "POST",
  address,
  body: Buffer.isBuffer(body) ? body : JSON.stringify(body),
});

const PATIENCE_MS = 60_000;
const FIVE_MILLION = 5_000_000;

/** 16 MB with five million elements. */
const manyElements = (open: string, close: string): Buffer =>
  Buffer.from(`${open}[${"1,".repeat(FIVE_MILLION - 1)}1]${close}`);
const manyObjects = (open: string, close: string): Buffer =>
  Buffer.from(`${open}[${"{},".repeat(FIVE_MILLION - 1)}{}]${close}`);

const mustMakeThread = async ({ send }: Sender): Promise<string> => {
  const made = await send(post("/threads", {}), PATIENCE_MS);
  if (made.kind !== "answered" || made.status !== 200) throw new Error(`No thread: ${JSON.stringify(made)}`);
  return (JSON.parse(made.text) as { thread_id: string }).thread_id;
};

/** Like conversations that once exhausted the memory: many states, a large state, many threads of a megabyte. */
const LONG_STATES = 500;
const LARGE_STATES = 100;
const LARGE_THREADS = 100;
const text = (megabytes: number): string => "x".repeat(megabytes * 1_000_000);
const message = (content: string) => ({ messages: [{ role: "user", content }] });
const superstep = (content: string) => ({ updates: [{ as_node: "agent", values: message(content) }] });

/** A thread with a state for each text. */
const mustMakeStates = async ({ send }: Sender, texts: readonly string[]): Promise<string> => {
  const threadId = randomUUID();
  const made = await send(
    post("/threads", {
      thread_id: threadId,
      metadata: { graph_id: "agent" },
      supersteps: texts.map(superstep),
    }),
    PATIENCE_MS,
  );
  if (made.kind !== "answered" || made.status !== 200) throw new Error(`No states: ${JSON.stringify(made)}`);
  return threadId;
};

export const hostilities = (): Hostility[] => {
  let poisoned = "";
  let long = "";
  let large = "";
  const run = (threadId: string, fields: object): Request =>
    post(`/threads/${threadId}/runs/wait`, { assistant_id: "agent", ...fields });
  return [
    {
      title: "A1 and A5: poisoned updates, inputs and jumps, and the searches and reads after them",
      prepare: async (sender) => {
        poisoned = await mustMakeThread(sender);
      },
      requests: () => [
        ...POISONS.map((poison) => run(poisoned, poison)),
        post("/threads/search", { limit: 100 }),
        { method: "GET", address: `/threads/${poisoned}/state` },
        post(`/threads/${poisoned}/history`, { limit: 100 }),
      ],
    },
    {
      title: "A2: graphs that loop without waiting, with the largest recursion_limit that is taken",
      requests: () =>
        [1e9, 10_000].map((limit) =>
          post("/runs/wait", {
            assistant_id: "restless",
            input: {},
            config: { recursion_limit: limit },
            on_disconnect: "cancel",
          }),
        ),
    },
    {
      title: "A3: four bodies of 16 MB with 5,000,000 elements each, as input and as metadata",
      requests: () => [
        post("/runs/wait", manyElements('{"assistant_id":"agent","input":{"x":', "}}")),
        post("/threads", manyElements('{"metadata":{"x":', "}}")),
        post("/runs/wait", manyObjects('{"assistant_id":"agent","input":{"x":', "}}")),
        post("/threads", manyObjects('{"metadata":{"x":', "}}")),
      ],
    },
    {
      title: "A3: the largest bodies that are taken",
      requests: () => [
        post("/runs/wait", {
          assistant_id: "counter",
          input: { x: Array.from({ length: 120_000 }, () => ({})) },
        }),
        post("/threads", { metadata: { x: Array.from({ length: 1_900 }, (_, index) => index) } }),
      ],
    },
    {
      title: "A4: filters by many values, and searches by values",
      requests: () => [
        post("/threads/search", { values: { x: Array.from({ length: 60_000 }, (_, index) => index) } }),
        post("/threads/search", { metadata: { x: Array.from({ length: 60_000 }, (_, index) => index) } }),
        post("/threads/search", { values: { x: Array.from({ length: 900 }, (_, index) => index) } }),
        post("/threads/search", { metadata: { x: Array.from({ length: 900 }, (_, index) => index) } }),
        post("/threads/count", { values: { messages: [{ content: "nobody wrote this" }] } }),
      ],
    },
    {
      title: "A6: pages of other sites, under names of their own",
      requests: () =>
        ["evil.example", "127.0.0.1"].flatMap((host) =>
          ["/threads", "/runs/cancel?x=1", "/threads/prune"].map((address) => ({
            ...post(address, {}),
            headers: { host, origin: "https://evil.example", "content-type": "text/plain" },
          })),
        ),
    },
    {
      title: "A8: histories and searches of large states",
      prepare: async (sender) => {
        const many = Array.from({ length: LONG_STATES }, (_, index) => `${index} ${"x".repeat(100)}`);
        long = await mustMakeStates(sender, many);
        large = await mustMakeStates(sender, [text(2), ...many.slice(1, LARGE_STATES)]);
        for (let count = 0; count < LARGE_THREADS; count += 1) await mustMakeStates(sender, [text(1)]);
      },
      requests: () => [
        post(`/threads/${long}/history`, { limit: LONG_STATES }),
        ...Array.from({ length: 4 }, () => post(`/threads/${large}/history`, { limit: LARGE_STATES })),
        post("/threads/search", { limit: 1_000 }),
      ],
    },
    {
      title: "A9: ids and names that are no text",
      requests: () =>
        ["/runs", "/runs/wait", "/runs/stream"].map((address) => post(address, { assistant_id: "\ud800" })),
    },
  ];
};
