import type { Callers, Credentials } from "./callers.ts";
import { mutatedRequest } from "./mutations.ts";
import { operationsOf, type Json, type Operation } from "./operations.ts";
import { protocolOperations } from "./protocol-operations.ts";
import { createRandom, type Random } from "./random.ts";
import { createSender, type Outcome, type Request, type Sender } from "./send.ts";

export interface Storm {
  url: string;
  document: unknown;
  seed: number;
  requests: number;
  atATime: number;
  /** Ids of assistants whose graphs end by themselves. */
  assistants: readonly string[];
  callers: Pick<Callers, "owners" | "others">;
}

export interface StormReport {
  requests: number;
  /** The count of each status, including `waiting` and `broken`. */
  answers: Record<string, number>;
  /** Unexpected results: one line for each, with its request. */
  complaints: string[];
}

/** A stream or a wait may be quiet for long; its end is not tested here. */
const MAY_WAIT = /\/(?:wait|stream|join)$|\/cancel$|^\/(?:mcp|a2a|agui)(?:\/|$)/;
/** JSON-RPC's code for a fault of the server. */
const INTERNAL_ERROR = /"code":\s*-32603\b/;
const STREAM_PATIENCE_MS = 400;
const HANG_MS = 20_000;

/** Requests after which a storm continues on new threads: old ones hold runs that never start. */
const REQUESTS_PER_GENERATION = 400;
const THREADS_PER_GENERATION = 8;
/** The share of requests by a thread's owner; the others come from other callers. */
const OWNERS_SHARE = 0.7;
const COMPLAINTS_AT_MOST = 40;
const EXCERPT = 600;

/** Receivers of webhooks: none, this server, and addresses that are forbidden, dead, or invalid. */
const WEBHOOKS: readonly Json[] = [
  ...[null, null, "/ok", "/threads", "/runs/wait?x=1", "//evil.example/", "/..%2f"],
  ...["http://127.0.0.1:9/hook", "http://169.254.169.254/latest", "https://receiver.invalid/hook?token=x"],
  ...["https://user:password@receiver.invalid/", "file:///etc/passwd", "not an address", "\ud800", ""],
  ...[{ url: "https://receiver.invalid/hook" }, { url: "/ok", headers: { "x-a": "b" } }, { constructor: 1 }],
  ...[["/ok"], 1, true],
];

/** Values that once broke threads permanently. */
export const POISONS: readonly Record<string, unknown>[] = [
  { command: { update: { constructor: 1 } } },
  { command: { update: { toString: 1, valueOf: 2, hasOwnProperty: 3, __defineGetter__: 4 } } },
  { command: { goto: "constructor" } },
  { command: { goto: [{ node: "toString", input: { messages: [] } }] } },
  { command: { update: [["constructor", 1]] } },
  { input: { messages: [{ foo: 1 }] } },
  { input: { messages: [null] } },
  { input: { messages: [{ role: "nobody", content: "x" }] } },
  { input: { constructor: 1, messages: [{ role: "user", content: "x" }] } },
  { input: { messages: [{ role: "user", content: "\ud800\0" }] } },
  {
    input: { messages: [{ role: "user", content: "x", additional_kwargs: { constructor: { toJSON: 1 } } }] },
  },
  {
    input: {
      messages: [{ lc: 1, type: "constructor", id: ["langchain_core", "messages", "X"], kwargs: {} }],
    },
  },
];

interface OwnedThread {
  threadId: string;
  owner: Credentials;
}

/** Threads of all kinds: new ones, ones with a history, and damaged ones. */
const someThreads = async (
  { send }: Sender,
  { assistants, callers: { owners } }: Storm,
  random: Random,
  complaints: string[],
): Promise<OwnedThread[]> => {
  const threads: OwnedThread[] = [];
  for (let count = 0; count < THREADS_PER_GENERATION; count += 1) {
    const owner = owners[count % owners.length] ?? owners[0];
    const made = await send({ method: "POST", address: "/threads", body: "{}", headers: owner }, HANG_MS);
    if (made.kind !== "answered" || made.status !== 200) {
      complaints.push(`a thread could not be made: ${JSON.stringify(made)}`);
      continue;
    }
    const { thread_id: threadId } = JSON.parse(made.text) as { thread_id: string };
    threads.push({ threadId, owner });
    const bodies = [
      ...(random.chance(0.6) ? [{ input: { messages: [{ role: "user", content: "hello" }] } }] : []),
      ...(random.chance(0.5) ? [random.pick(POISONS)] : []),
    ];
    for (const body of bodies) {
      const request: Request = {
        method: "POST",
        address: `/threads/${threadId}/runs/wait`,
        body: JSON.stringify({ assistant_id: random.pick(assistants), ...body }),
        headers: owner,
      };
      complain(request, await send(request, HANG_MS), complaints);
    }
  }
  return threads;
};

const excerpt = ({ method, address, body }: Request): string =>
  `${method} ${address.slice(0, EXCERPT)} ${String(body ?? "").slice(0, EXCERPT)}`;

const complain = (request: Request, outcome: Outcome, complaints: string[]): void => {
  if (outcome.kind === "answered" && (outcome.status >= 500 || INTERNAL_ERROR.test(outcome.text))) {
    complaints.push(`${outcome.status} (${outcome.text.slice(0, 200)}): ${excerpt(request)}`);
  } else if (outcome.kind === "waiting" && !MAY_WAIT.test(request.address.split("?")[0]!)) {
    complaints.push(`no answer within ${HANG_MS} ms: ${excerpt(request)}`);
  } else if (outcome.kind === "broken" && outcome.why !== "ECONNRESET") {
    complaints.push(`no answer at all (${outcome.why}): ${excerpt(request)}`);
  }
};

/** The share of requests by MCP, A2A and AG-UI. */
const PROTOCOLS_SHARE = 0.3;

const operationsOn = (storm: Storm, threadId: string, random: Random): Operation[] =>
  operationsOf(storm.document, {
    assistant_id: random.pick(storm.assistants),
    graph_id: random.pick(storm.assistants),
    thread_id: threadId,
    checkpoint_id: null,
    checkpoint_ns: "",
    checkpoint_map: null,
    webhook: random.pick(WEBHOOKS),
    multitask_strategy: "enqueue",
    as_node: null,
    goto: random.pick(["agent", "increment", "__end__", "constructor"]),
    namespace: ["notes"],
    key: "one",
    // Otherwise hardly a run would start.
    after_seconds: null,
    recursion_limit: 25,
    query: null,
    extract: { key: "values.messages" },
  }).filter(
    // This operation would delete the others' data.
    ({ method, template }) =>
      !(method === "DELETE" && /^\/(?:assistants|threads)\/\{[^/]+\}$/.test(template)),
  );

/** Sends mutated requests for all operations of a server, on threads of all kinds, some of them poisoned. */
export const runStorm = async (storm: Storm): Promise<StormReport> => {
  const random = createRandom(storm.seed);
  const sender = createSender(storm.url, storm.atATime);
  const answers: Record<string, number> = {};
  const complaints: string[] = [];
  let sent = 0;

  const sendOne = async (operations: readonly Operation[], owner: Credentials): Promise<void> => {
    const mutated = mutatedRequest(random.pick(operations), random);
    const caller = random.chance(OWNERS_SHARE) ? owner : random.pick(storm.callers.others);
    const request = { ...mutated, headers: { ...caller, ...mutated.headers } };
    const mayWait = MAY_WAIT.test(request.address.split("?")[0]!);
    const outcome = await sender.send(request, mayWait ? STREAM_PATIENCE_MS : HANG_MS);
    const name = outcome.kind === "answered" ? String(outcome.status) : outcome.kind;
    answers[name] = (answers[name] ?? 0) + 1;
    complain(request, outcome, complaints);
  };

  try {
    while (sent < storm.requests && complaints.length < COMPLAINTS_AT_MOST) {
      const threads = await someThreads(sender, storm, random, complaints);
      if (threads.length === 0) break;
      const works = threads.map(({ threadId, owner }) => ({
        operations: operationsOn(storm, threadId, random),
        protocols: protocolOperations(random.pick(storm.assistants), threadId),
        owner,
      }));
      const until = Math.min(sent + REQUESTS_PER_GENERATION, storm.requests);
      const work = async (): Promise<void> => {
        while (sent < until && complaints.length < COMPLAINTS_AT_MOST) {
          sent += 1;
          const { operations, protocols, owner } = random.pick(works);
          await sendOne(random.chance(PROTOCOLS_SHARE) ? protocols : operations, owner);
        }
      };
      await Promise.all(Array.from({ length: storm.atATime }, work));
      for (const headers of storm.callers.owners) {
        const search: Request = { method: "POST", address: "/threads/search", body: '{"limit":20}', headers };
        const found = await sender.send(search, HANG_MS);
        complain(search, found, complaints);
        if (found.kind !== "answered" || found.status !== 200) {
          complaints.push(`threads can't be searched after ${sent} requests: ${JSON.stringify(found)}`);
        }
      }
    }
  } finally {
    sender.close();
  }
  return { requests: sent, answers, complaints };
};
