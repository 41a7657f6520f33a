import type { HttpClient } from "../http-client.ts";
import { CHANNEL, customerOf, NAMESPACE, ownerOf, TOPIC, type Filled, type Size } from "./fill.ts";

export interface Read {
  label: string;
  /** For p50. */
  wanted?: string;
  /** Throws if the answer is empty, because that would be fast. `index`: the number of the request. */
  ask(index: number): Promise<void>;
}

/** Clients of servers with the same data. */
export interface Clients {
  all: HttpClient;
  /** Users of an `Auth` that filters by owner; in turns. */
  owners: readonly HttpClient[];
  /** The user that a fifth of all threads belongs to. */
  ownerOfMany: HttpClient;
}

const WANTED = "<= 10";
/** The distance between the requested customers and threads. */
const STRIDE = 7_919;

const expectSomething = (what: string, body: string): void => {
  if (body === "[]" || body === "0" || body.length === 0) throw new Error(`${what}: the answer is empty.`);
};

/** Every search, list, count and read of a state, in a client's form. */
export const readsOf = async (
  { all, owners, ownerOfMany }: Clients,
  size: Size,
  { threadIds, longThreadId }: Filled,
): Promise<Read[]> => {
  const reads: Read[] = [];
  const add = (label: string, ask: (index: number) => Promise<{ body: string }>, wanted?: string): void => {
    reads.push({
      label,
      ...(wanted !== undefined && { wanted }),
      ask: async (index) => expectSomething(label, (await ask(index)).body),
    });
  };
  const threadId = (index: number): string => threadIds[index % threadIds.length]!;
  const owner = (index: number): HttpClient => owners[index % owners.length]!;
  const search = (label: string, body: object, wanted?: string): void =>
    add(`threads, ${label}`, () => all.post("/threads/search", { limit: 10, ...body }), wanted);
  const searchOfOwner = (label: string, body: object, wanted?: string): void =>
    add(
      `threads of an owner, ${label}`,
      (index) => owner(index).post("/threads/search", { limit: 10, ...body }),
      wanted,
    );
  const customer = (index: number): object => ({ customer: customerOf(index * STRIDE, size) });

  search("default order", {}, WANTED);
  search("without values", { select: ["thread_id", "metadata", "status", "updated_at"] }, WANTED);
  searchOfOwner("default order", {}, WANTED);
  searchOfOwner("by last update", { sort_by: "updated_at" }, WANTED);
  searchOfOwner("by status", { sort_by: "status" }, WANTED);
  searchOfOwner("idle", { status: "idle" }, WANTED);
  add(
    "threads of the owner of a fifth of them",
    () => ownerOfMany.post("/threads/search", { limit: 10 }),
    WANTED,
  );
  add(
    "threads, metadata of four",
    (index) => all.post("/threads/search", { limit: 10, metadata: customer(index) }),
    WANTED,
  );
  search("metadata of one of a hundred", { metadata: { topic: TOPIC } }, WANTED);
  search("metadata of a quarter", { metadata: { channel: CHANNEL } }, WANTED);
  search("metadata of nearly all", { metadata: { graph_id: "two-step" } }, WANTED);
  for (const sort_by of ["updated_at", "state_updated_at", "thread_id", "status"])
    for (const sort_order of ["desc", "asc"])
      search(`sort_by ${sort_by} ${sort_order}`, { sort_by, sort_order }, WANTED);
  search("sort_by created_at asc", { sort_order: "asc" }, WANTED);
  for (const status of ["idle", "interrupted", "error"]) search(`status ${status}`, { status }, WANTED);
  const offset = size.threads / 20;
  search(`offset ${offset.toLocaleString("en-US")}`, { offset });
  add("threads, ten ids", (index) =>
    all.post("/threads/search", {
      ids: Array.from({ length: 10 }, (_, place) => threadId(index * 10 + place)),
    }),
  );
  add("threads, values and metadata of four", async (index) => {
    const { body } = await all.post("/threads/search", {
      limit: 10,
      metadata: customer(index),
      values: { messages: [] },
    });
    // Some customers' threads have no runs.
    return { body: body === "[]" ? "[...]" : body };
  });
  search("extract of values", { select: ["thread_id"], extract: { last: "values.messages[-1].content" } });

  const count = (label: string, body: object): void =>
    add(`count of threads, ${label}`, () => all.post("/threads/count", body));
  count("all", {});
  add("count of threads of an owner", (index) => owner(index).post("/threads/count", {}));
  add("count of threads of the owner of a fifth", () => ownerOfMany.post("/threads/count", {}));
  add("count of threads, metadata of four", (index) =>
    all.post("/threads/count", { metadata: customer(index) }),
  );
  count("metadata of one of a hundred", { metadata: { topic: TOPIC } });
  count("metadata of a quarter", { metadata: { channel: CHANNEL } });
  for (const status of ["idle", "interrupted"]) count(`status ${status}`, { status });

  const history = await all.json<{ checkpoint: { checkpoint_id: string } }[]>(
    `/threads/${longThreadId}/history?limit=1000`,
  );
  const idAt = (share: number): string =>
    history[Math.floor(history.length * share)]!.checkpoint.checkpoint_id;
  add("thread", (index) => all.get(`/threads/${threadId(index)}`));
  add("state", (index) => all.get(`/threads/${threadId(index)}/state`));
  add(`state of the long thread (${size.longTurns} turns)`, () => all.get(`/threads/${longThreadId}/state`));
  add("state of the long thread in its middle", () => all.get(`/threads/${longThreadId}/state/${idAt(0.5)}`));
  add("history", (index) => all.get(`/threads/${threadId(index)}/history?limit=10`));
  add("history of the long thread", () => all.get(`/threads/${longThreadId}/history?limit=10`));
  add("history of the long thread, a deep page", () =>
    all.get(`/threads/${longThreadId}/history?limit=10&before=${idAt(0.9)}`),
  );
  add("history by metadata", () =>
    all.post(`/threads/${longThreadId}/history`, { limit: 10, metadata: { source: "input" } }),
  );
  add("runs of a thread", (index) => all.get(`/threads/${threadId(index)}/runs?limit=10`));
  add("runs of the long thread", () => all.get(`/threads/${longThreadId}/runs?limit=10`));

  const team = (index: number): object => ({ metadata: { team: `team-${index % 50}` } });
  for (const [name, path] of [
    ["assistants", "/assistants"],
    ["crons", "/runs/crons"],
  ] as const) {
    add(name, () => all.post(`${path}/search`, { limit: 10 }));
    add(`${name} of a team`, (index) => all.post(`${path}/search`, { limit: 10, ...team(index) }));
    add(`count of ${name}`, () => all.post(`${path}/count`, {}));
  }
  const user = (index: number): string[] => [
    ...NAMESPACE,
    `user-${1 + ((index * 97) % (size.storeItems / 20))}`,
  ];
  add("store, one user", (index) => all.post("/store/items/search", { namespace_prefix: user(index) }));
  add("store, all of a kind", () =>
    all.post("/store/items/search", { namespace_prefix: NAMESPACE, filter: { kind: "kind-3" }, limit: 10 }),
  );
  add("store, item", (index) =>
    all.get(`/store/items?namespace=${[...user(index), "memories"].join(".")}&key=memory-3`),
  );
  add("store, namespaces of a user", (index) => all.post("/store/namespaces", { prefix: user(index) }));
  add("store, namespaces", () =>
    all.post("/store/namespaces", { prefix: NAMESPACE, max_depth: 2, limit: 10 }),
  );
  return reads;
};

export const clientsOfOwners = (size: Size, connect: (owner: string) => HttpClient): HttpClient[] =>
  Array.from({ length: 20 }, (_, index) => connect(ownerOf(index * 5, size)));
