import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { startReceiver, type Receiver } from "../../protocols/webhooks/receiver.ts";
import { send, type Answer, type Asked } from "./cells.ts";
import {
  assertReceived,
  forgetOwed,
  OPEN_OPERATIONS,
  performOpen,
  tally,
  type OpenModel,
  type OpenOperation,
} from "./open-operations.ts";
import { RUN } from "./requests.ts";

/**
 * Two users make random requests at the same time and choose the same ids. A model of each user's own records predicts every id, count,
 * total, error text, event, webhook and log line; any trace of the other user contradicts it.
 */

const CONFIG = fileURLToPath(new URL("./langgraph.json", import.meta.url));
/** A case takes two thirds of a second. `INTERLEAVINGS=1000 npx vitest run test/access/matrix` runs 1,000. */
const CASES = Number(process.env["INTERLEAVINGS"] ?? 80);
const WITHIN_MS = 1_200_000;
/** Every user sees the assistants of the graphs. */
const SYSTEM_ASSISTANTS = 2;

let server: TestServer;
let receiver: Receiver;
let operationsDone = 0;
let linesRead = 0;
beforeAll(async () => {
  receiver = await startReceiver();
  server = await startTestServer({
    graphConfigFile: CONFIG,
    projectKeys: {
      webhooks: { url: { disable_loopback: false } },
      // This logs a line for each request.
      http: { logging_headers: { includes: ["user-agent"] } },
    },
  });
});
afterAll(async () => {
  process.stdout.write(
    `interleavings: ${CASES} cases, ${operationsDone} requests of two users, ${linesRead} lines logged for them; ` +
      `${tally.listened} streams and sockets (${tally.reported} had a run to report), ${tally.delivered} webhooks, ` +
      `${tally.compared} answers about the other's ids beside those about missing ones\n`,
  );
  await server.close();
  await receiver.close();
});

const OPERATIONS = [
  "make thread",
  "make or take thread",
  "read thread",
  "tag thread",
  "delete thread",
  "copy thread",
  "read state",
  "write state",
  "list threads",
  "count threads",
  "run",
  "stream a run",
  "list runs",
  "search runs",
  "make assistant",
  "read assistant",
  "delete assistant",
  "list assistants",
  "count assistants",
  "schedule",
  "list crons",
  "count crons",
  "read cron of other",
  "put item",
  "read item",
  "list items",
  "list namespaces",
  "delete item",
] as const;
type Operation = (typeof OPERATIONS)[number] | OpenOperation;

interface Model extends OpenModel {
  assistants: Set<string>;
  items: Set<string>;
  /** The user's requests, each with the names that it contained. */
  asked: Map<string, string>;
}

const aModel = (name: string): Model => ({
  name,
  threads: new Set(),
  assistants: new Set(),
  crons: new Set(),
  items: new Set(),
  runs: [],
  listeners: [],
  deliveries: 0,
  asked: new Map(),
});

/** Texts that must not appear in the other user's answers. Names that both users have used are excluded. */
const tracesOf = ({ name, crons, runs }: Model): string[] => [
  ...[name, ...crons],
  ...runs.map(({ runId }) => runId),
];
const found = (traces: readonly string[], text: string, named = ""): string[] =>
  traces.filter((trace) => text.includes(trace) && !named.includes(trace));

/** The log lines of one user's requests contain nothing of the other user. */
const assertLogged = (me: Model, other: Model, lines: readonly string[]): void => {
  const traces = tracesOf(other);
  for (const line of lines) {
    const request = /"reqId":"([^"]+)"/.exec(line)?.[1];
    // A line without a request comes from background work, which handles one user at a time.
    const isMine = request === undefined ? found(tracesOf(me), line).length > 0 : me.asked.has(request);
    if (!isMine) continue;
    linesRead += 1;
    expect([line, found(traces, line, me.asked.get(request ?? ""))]).toEqual([line, []]);
  }
};

const listed = ({ text }: Answer, field: string): string[] =>
  (JSON.parse(text) as Record<string, string>[]).map((record) => record[field] ?? "").toSorted();

const perform = async (
  me: Model,
  other: Model,
  operation: Operation,
  pick: number,
  pool: { threads: string[]; assistants: string[]; keys: string[] },
): Promise<void> => {
  const threadId = pool.threads[pick % pool.threads.length] ?? "";
  const assistantId = pool.assistants[pick % pool.assistants.length] ?? "";
  const key = pool.keys[pick % pool.keys.length] ?? "";
  const mark = `mark-of-${me.name}`;
  const owns = me.threads.has(threadId);
  const ask = async (method: string, path: string, body?: unknown): Promise<Answer> => {
    const asked: Asked = { method, path, body, headers: { authorization: `Bearer ${me.name}` } };
    const answer = await send(server.url, asked);
    operationsDone += 1;
    const answered = `${answer.text} ${JSON.stringify(answer.headers)}`;
    me.asked.set(answer.requestId ?? "", path);
    const traces = found(tracesOf(other), answered, path);
    expect([operation, traces, answer.status < 500]).toEqual([operation, [], true]);
    return answer;
  };
  /** Expects the same text as for a missing record. */
  const isMissing = (answer: Answer, what: string, id: string): void =>
    expect([operation, answer.status, answer.text]).toEqual([
      operation,
      404,
      JSON.stringify({ detail: `${what} '${id}' not found.` }),
    ]);
  const ofThread = async (method: string, path: string, body?: unknown): Promise<Answer> => {
    const answer = await ask(method, `/threads/${threadId}${path}`, body);
    if (!owns) isMissing(answer, "Thread", threadId);
    else expect([operation, answer.status]).toEqual([operation, method === "DELETE" ? 204 : 200]);
    return answer;
  };
  const lists = async (path: string, field: string, own: Set<string>): Promise<void> => {
    const answer = await ask("POST", path, { limit: 100 });
    expect([operation, listed(answer, field)]).toEqual([operation, [...own].toSorted()]);
    const total = answer.headers["x-pagination-total"];
    if (total !== undefined) expect([operation, Number(total)]).toEqual([operation, own.size]);
  };
  const counts = async (path: string, own: number): Promise<void> =>
    expect([operation, (await ask("POST", path, {})).text]).toEqual([operation, String(own)]);
  /** The second user finds the id taken, and the answer does not name the owner. */
  const makes = async (own: Set<string>, id: string, what: string, path: string, body: object) => {
    const answer = await ask("POST", path, body);
    if (answer.status === 200) own.add(id);
    else
      expect([operation, answer.status, answer.text]).toEqual([
        operation,
        409,
        JSON.stringify({ detail: `${what} '${id}' already exists.` }),
      ]);
  };

  switch (operation) {
    case "make thread":
      return await makes(me.threads, threadId, "Thread", "/threads", {
        thread_id: threadId,
        metadata: { mark },
      });
    case "make or take thread":
      return await makes(me.threads, threadId, "Thread", "/threads", {
        thread_id: threadId,
        if_exists: "do_nothing",
      });
    case "read thread":
      return void (await ofThread("GET", ""));
    case "tag thread":
      return void (await ofThread("PATCH", "", { metadata: { mark, [key]: mark } }));
    case "delete thread":
      await ofThread("DELETE", "");
      forgetOwed(me, threadId, { isGone: true });
      return void me.threads.delete(threadId);
    case "copy thread": {
      const copy = await ofThread("POST", "/copy", {});
      if (owns) me.threads.add((JSON.parse(copy.text) as { thread_id: string }).thread_id);
      return;
    }
    case "read state":
      return void (await ofThread("GET", "/state"));
    case "write state": {
      const body = { values: { messages: [{ role: "user", content: mark }] }, as_node: "__start__" };
      const answer = await ask("POST", `/threads/${threadId}/state`, body);
      if (!owns) isMissing(answer, "Thread", threadId);
      return;
    }
    case "list threads":
      return await lists("/threads/search", "thread_id", me.threads);
    case "count threads":
      return await counts("/threads/count", me.threads.size);
    case "run":
    case "stream a run": {
      const body = { ...RUN, input: { messages: [{ role: "user", content: mark }] } };
      await ofThread("POST", operation === "run" ? "/runs/wait" : "/runs/stream", body);
      return forgetOwed(me, threadId, { isGone: false });
    }
    case "list runs":
      return void (await ofThread("GET", "/runs"));
    case "search runs": {
      const answer = await ask("POST", "/runs/search", { limit: 100 });
      const threads = new Set(listed(answer, "thread_id"));
      expect([operation, [...threads].filter((id) => !me.threads.has(id))]).toEqual([operation, []]);
      return;
    }
    case "make assistant":
      return await makes(me.assistants, assistantId, "Assistant", "/assistants", {
        assistant_id: assistantId,
        graph_id: "agent",
        name: mark,
      });
    case "read assistant": {
      const answer = await ask("GET", `/assistants/${assistantId}`);
      if (me.assistants.has(assistantId)) expect(answer.status).toBe(200);
      else isMissing(answer, "Assistant", assistantId);
      return;
    }
    case "delete assistant": {
      const answer = await ask("DELETE", `/assistants/${assistantId}`);
      if (me.assistants.delete(assistantId)) expect(answer.status).toBeLessThan(300);
      else isMissing(answer, "Assistant", assistantId);
      return;
    }
    case "list assistants": {
      const answer = await ask("POST", "/assistants/search", { limit: 100 });
      const own = listed(answer, "assistant_id");
      expect([operation, own.length]).toEqual([operation, me.assistants.size + SYSTEM_ASSISTANTS]);
      for (const id of me.assistants) expect(own).toContain(id);
      return;
    }
    case "count assistants":
      return await counts("/assistants/count", me.assistants.size + SYSTEM_ASSISTANTS);
    case "schedule": {
      const answer = await ask("POST", "/runs/crons", { ...RUN, schedule: "0 9 1 1 *", metadata: { mark } });
      return void me.crons.add((JSON.parse(answer.text) as { cron_id: string }).cron_id);
    }
    case "list crons":
      return await lists("/runs/crons/search", "cron_id", me.crons);
    case "count crons":
      return await counts("/runs/crons/count", me.crons.size);
    case "read cron of other": {
      const [cronId] = other.crons;
      if (cronId === undefined) return;
      const asked = {
        method: "GET",
        path: `/runs/crons/${cronId}`,
        headers: { authorization: `Bearer ${me.name}` },
      };
      return isMissing(await send(server.url, asked), "Cron", cronId);
    }
    case "put item": {
      await ask("PUT", "/store/items", { namespace: ["n"], key, value: { mark } });
      return void me.items.add(key);
    }
    case "read item": {
      const answer = await ask("GET", `/store/items?namespace=n&key=${key}`);
      return expect([operation, answer.text.includes(mark)]).toEqual([operation, me.items.has(key)]);
    }
    case "list items": {
      const { text } = await ask("POST", "/store/items/search", { namespace_prefix: [], limit: 100 });
      const keys = (JSON.parse(text) as { items: { key: string }[] }).items.map((item) => item.key);
      return expect([operation, keys.toSorted()]).toEqual([operation, [...me.items].toSorted()]);
    }
    case "list namespaces": {
      const { text } = await ask("POST", "/store/namespaces", {});
      const found = (JSON.parse(text) as { namespaces: string[][] }).namespaces.length;
      return expect([operation, found]).toEqual([operation, me.items.size > 0 ? 1 : 0]);
    }
    case "delete item": {
      await ask("DELETE", "/store/items", { namespace: ["n"], key });
      return void me.items.delete(key);
    }
    default:
      return await performOpen(me, other, operation, {
        ...{ url: server.url, receiver: receiver.url, threadId, ask, isMissing },
      });
  }
};

const step = fc.record({
  user: fc.constantFrom("ann", "bob"),
  operation: fc.constantFrom(...OPERATIONS, ...OPEN_OPERATIONS),
  pick: fc.nat(3),
  /** Lets running requests finish first. */
  waits: fc.boolean(),
});

test(
  "two users make any requests at the same time, and neither sees a trace of the other",
  async () => {
    let cases = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 6, maxLength: 16 }), async (steps) => {
        cases += 1;
        // Each case has new users, so no records have to be deleted.
        const ann = aModel(`ann${cases}0`);
        const bob = aModel(`bob${cases}0`);
        const pool = {
          threads: [newId(), newId(), newId()],
          assistants: [newId(), newId()],
          keys: ["k", "l"],
        };
        // Requests for the other user's records need such records.
        const begin = async (me: Model, other: Model, pick: number): Promise<void> => {
          for (const first of ["make thread", "batch", "schedule"] as const)
            await perform(me, other, first, pick, pool);
        };
        const underWay = { ann: begin(ann, bob, 0), bob: begin(bob, ann, 1) };
        for (const { user, operation, pick, waits } of steps) {
          const [me, other] = user === "ann" ? [ann, bob] : [bob, ann];
          underWay[user as "ann" | "bob"] = underWay[user as "ann" | "bob"].then(() =>
            perform(me, other, operation, pick, pool),
          );
          if (waits) await Promise.all(Object.values(underWay));
        }
        for (const user of ["ann", "bob"] as const) {
          const [me, other] = user === "ann" ? [ann, bob] : [bob, ann];
          underWay[user] = underWay[user].then(async () => {
            const own = me.listeners.find(({ isOwn, owed }) => isOwn && owed === undefined);
            if (own !== undefined)
              await perform(me, other, "batch", pool.threads.indexOf(own.threadId), pool);
          });
        }
        const all = await Promise.allSettled(Object.values(underWay));
        const received = () => receiver.received;
        await assertReceived(ann, tracesOf(bob), received);
        await assertReceived(bob, tracesOf(ann), received);
        const failed = all.find(({ status }) => status === "rejected");
        if (failed?.status === "rejected") throw failed.reason;
        const lines = server.lines.splice(0);
        receiver.received.splice(0);
        assertLogged(ann, bob, lines);
        assertLogged(bob, ann, lines);
      }),
      { numRuns: CASES, endOnFailure: false },
    );
  },
  WITHIN_MS,
);
