import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { query } from "../../helpers/query.ts";
import { ROUTES, WITHOUT_EVENTS } from "../route-table.ts";
import { createMatrix, difference, handshake, overSocket, send, type Answer, type Asked } from "./cells.ts";
import { furtherRequests, requestFor, RUN, type Ids, threadMakers } from "./requests.ts";

/** Every route with users who must not see a record: it is another user's, a filter hides it, or the handler fails. */

const CONFIG = fileURLToPath(new URL("./langgraph.json", import.meta.url));
const CANARY = "canary-of-them";
const matrix = createMatrix();
let server: TestServer;
let mine: Ids;
let theirs: Ids;
const missing: Ids = {
  thread_id: newId(),
  run_id: newId(),
  checkpoint_id: newId(),
  assistant_id: newId(),
  cron_id: newId(),
  event_id: "98765432101234",
  key: "no-such-key",
};

type User = "me" | "them" | "hider" | "thrower" | "denied" | "faulty";
interface Made extends Record<keyof Ids, string> {
  checkpoint: { checkpoint_id: string };
}
const by = (user: User) => ({ authorization: `Bearer ${user}` });
const as = async (user: User, asked: Asked & { isEndless?: boolean | undefined }): Promise<Answer> =>
  await send(server.url, { ...asked, headers: { ...asked.headers, ...by(user) } }, asked);
const made = async (user: User, method: string, path: string, body?: unknown): Promise<Made> => {
  const answer = await as(user, { method, path, body });
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
  return (answer.text === "" ? {} : JSON.parse(answer.text)) as Made;
};

const aWorld = async (user: "me" | "them"): Promise<Ids> => {
  const tag = user === "them" ? CANARY : "of-me";
  const metadata = { tag };
  const input = { messages: [{ role: "user", content: tag }] };
  const { assistant_id } = await made(user, "POST", "/assistants", {
    graph_id: "agent",
    name: tag,
    metadata,
  });
  const { thread_id } = await made(user, "POST", "/threads", { metadata });
  await as(user, {
    method: "POST",
    path: `/threads/${thread_id}/runs/stream`,
    body: { ...RUN, input, metadata, stream_resumable: true },
  });
  const [event] = await query<{ id: string }>(
    server,
    "select max(thread_seq)::text as id from threadloom.run_events where thread_id = $1",
    [thread_id],
  );
  const { run_id } = await made(user, "POST", `/threads/${thread_id}/runs`, {
    ...RUN,
    input,
    after_seconds: 3_600,
  });
  const { checkpoint } = await made(user, "GET", `/threads/${thread_id}/state`);
  const { cron_id } = await made(user, "POST", "/runs/crons", { ...RUN, schedule: "0 9 * * *", metadata });
  const key = `key-of-${user}`;
  await made(user, "PUT", "/store/items", { namespace: ["memories"], key, value: { tag } });
  const { checkpoint_id } = checkpoint;
  return { thread_id, run_id, checkpoint_id, assistant_id, cron_id, event_id: event?.id ?? "", key };
};

beforeAll(async () => {
  server = await startTestServer({ graphConfigFile: CONFIG });
  theirs = await aWorld("them");
  mine = await aWorld("me");
});
afterAll(async () => {
  process.stdout.write(matrix.summary());
  await server.close();
});

/** Names of the record that appear in the answer and were not in the request. */
const traceIn = ({ text, headers }: Answer, asked: unknown): string => {
  const all = `${text} ${JSON.stringify(headers)}`;
  const request = JSON.stringify(asked);
  const { thread_id, run_id, checkpoint_id, assistant_id, cron_id, key } = theirs;
  const traces = [thread_id, run_id, checkpoint_id, assistant_id, cron_id, key, CANARY];
  const found = traces.filter((trace) => all.includes(trace) && !request.includes(trace));
  return found.length === 0 ? "" : `${found.join(", ")} in ${all.slice(0, 300)}`;
};
const PAIRS = (): [string, string][] =>
  (Object.keys(missing) as (keyof Ids)[]).map((name) => [theirs[name], missing[name]]);

/** The routes that ask for an event. A route without one needs a reason in `WITHOUT_EVENTS`, or the matrix of keys fails. */
const guarded = Object.entries(ROUTES).filter(([route]) => WITHOUT_EVENTS[route] === undefined);

const comparing = async (
  column: string,
  user: User,
  name: string,
  make: (ids: Ids) => Asked,
  isEndless = false,
) => {
  const [asked, none] = [make(theirs), make(missing)];
  const hidden = await as(user, { ...asked, isEndless });
  const absent = await as(user, { ...none, isEndless });
  const fault = difference(hidden, absent, PAIRS()) || traceIn(hidden, asked);
  matrix.cell(column, `${user}: ${name}`, fault || (hidden.status >= 500 ? hidden.text : ""));
};

test("a record of another user, or one hidden by a filter, gets exactly the answer of a missing record", async () => {
  for (const [route, expected] of guarded) {
    // This route creates a record and names no existing one.
    if (!/:(thread|run|assistant|cron)_id/.test(route)) continue;
    for (const [column, user] of [
      ["other user's id", "me"],
      ["filter that hides", "hider"],
    ] as const)
      await comparing(column, user, route, (ids) => requestFor(route, expected, ids), expected.isEndless);
  }
  for (const [name, make] of Object.entries(furtherRequests(mine)))
    await comparing("other user's id or cursor in a request", "me", name, make, make(missing).isEndless);
  expect(matrix.takeLeaks()).toEqual([]);
});

test("creating a record under the id of another user's record answers that the id is taken, and nothing else", async () => {
  const { thread_id, assistant_id } = theirs;
  for (const [name, asked] of Object.entries<Asked>({
    "a thread": { method: "POST", path: "/threads", body: { thread_id } },
    "a thread, or part of one": {
      method: "POST",
      path: "/threads",
      body: { thread_id, if_exists: "do_nothing" },
    },
    "an assistant": { method: "POST", path: "/assistants", body: { assistant_id, graph_id: "agent" } },
    "an assistant, or part of one": {
      method: "POST",
      path: "/assistants",
      body: { assistant_id, graph_id: "agent", if_exists: "do_nothing" },
    },
    "a run that makes its thread": {
      method: "POST",
      path: `/threads/${thread_id}/runs`,
      body: { ...RUN, if_not_exists: "create" },
    },
    ...threadMakers(thread_id),
  })) {
    const answer = await as("me", asked);
    // JSON-RPC answers errors with the status 200.
    const isRefused = [404, 409].includes(answer.status) || answer.text.includes("already exists.");
    const fault = isRefused ? traceIn(answer, asked) : `${answer.status} ${answer.text}`;
    matrix.cell("other user's id", `make ${name}`, fault);
  }
  expect(matrix.takeLeaks()).toEqual([]);
});

const SEARCHES = [
  "/threads/search",
  "/assistants/search",
  "/runs/search",
  "/runs/crons/search",
  "/store/items/search",
];

test("pages, totals and counts contain only the user's own records, from every offset", async () => {
  for (const path of SEARCHES)
    for (const user of ["me", "hider"] as const)
      for (const offset of [0, 1, 2, 3, 1_000])
        for (const limit of [1, 100]) {
          const asked = { method: "POST", path, body: { offset, limit } };
          const answer = await as(user, asked);
          const total = answer.headers["x-pagination-total"];
          const atMost = path.startsWith("/assistants") ? 3 : path.startsWith("/runs/search") ? 2 : 1;
          const isFewer = total === undefined || Number(total) <= atMost;
          const fault = traceIn(answer, asked) || (isFewer ? "" : `a total of ${total}`);
          matrix.cell(
            "other user's offset",
            `${user}: ${path} from ${offset}`,
            fault || (answer.status === 200 ? "" : answer.text),
          );
        }
  for (const [path, own] of [
    ["/threads/count", 1],
    ["/assistants/count", 3],
    ["/runs/crons/count", 1],
  ] as const)
    for (const [user, many] of [
      ["me", own],
      ["hider", own - 1],
    ] as const) {
      const answer = await as(user, { method: "POST", path, body: {} });
      matrix.cell("other user's offset", `${user}: ${path}`, answer.text === String(many) ? "" : answer.text);
    }
  expect(matrix.takeLeaks()).toEqual([]);
});

test("a filter that hides everything also holds for routes that name no record", async () => {
  for (const [route, expected] of guarded) {
    if (/:(thread|run|assistant|cron)_id/.test(route)) continue;
    const asked = requestFor(route, expected, missing);
    const answer = await as("hider", asked);
    matrix.cell(
      "filter that hides",
      route,
      traceIn(answer, asked) || (answer.status >= 500 ? answer.text : ""),
    );
  }
  expect(matrix.takeLeaks()).toEqual([]);
});

test("a handler that throws, refuses, or is not called reveals nothing about itself", async () => {
  /** A command is always answered with 200; see protocols/streaming/commands/runs.ts. */
  const isCommand = (route: string): boolean => route.endsWith("/commands");
  const FAULT_OF_COMMAND =
    '"error":"unknown_error","message":"The server could not do this; its log says why."';
  let first: Answer | undefined;
  for (const [route, expected] of guarded) {
    const asked = { ...requestFor(route, expected, theirs), isEndless: expected.isEndless };
    const thrown = await as("thrower", asked);
    if (!isCommand(route)) first ??= thrown;
    const isHidden = isCommand(route)
      ? thrown.text.includes(FAULT_OF_COMMAND)
      : thrown.status === 500 && thrown.text === first?.text;
    const fault = isHidden ? "" : `${thrown.status} ${thrown.text}`;
    matrix.cell("handler that throws", route, fault || (thrown.text.includes("canary") ? thrown.text : ""));
    const denied = await as("denied", asked);
    matrix.cell(
      "handler that refuses",
      route,
      denied.status === 403 ? traceIn(denied, asked) : `${denied.status} ${denied.text}`,
    );
    for (const headers of [{}, by("faulty")]) {
      const answer = await send(server.url, { ...asked, headers }, asked);
      const isRefused = answer.status === 401 && !answer.text.includes("canary");
      matrix.cell("no user", route, isRefused ? traceIn(answer, asked) : `${answer.status} ${answer.text}`);
    }
  }
  expect(matrix.takeLeaks()).toEqual([]);
});

test("a WebSocket to another user's thread answers each command and subscription as for a missing thread", async () => {
  const commands = [
    ["subscription.subscribe", { channels: ["values", "lifecycle"] }],
    ["subscription.subscribe", { channels: ["values"], since: 0 }],
    ["state.get", { namespace: [] }],
    ["state.listCheckpoints", {}],
    ["state.fork", { checkpoint_id: theirs.checkpoint_id, input: {} }],
    ["input.respond", { namespace: [], interrupt_id: "x", response: 1 }],
    ["agent.getTree", {}],
    ["agent.getTree", { run_id: theirs.run_id }],
    ["run.start", { ...RUN, assistant_id: theirs.assistant_id }],
  ] as const;
  for (const user of ["me", "hider"] as const) {
    const [hidden, none] = await Promise.all(
      [theirs, missing].map(({ thread_id }) => overSocket(server.url, thread_id, by(user), commands)),
    );
    for (const [index, [method, params]] of commands.entries()) {
      const answers = [hidden, none].map((all) => ({
        status: 101,
        headers: {},
        // A subscription's own id differs each time.
        text: (all?.[index] ?? "").replace(/"subscription_id":"[^"]+"/, ""),
      }));
      const [one, other] = answers as [Answer, Answer];
      const fault = difference(one, other, PAIRS()) || traceIn(one, [theirs.thread_id, params]);
      matrix.cell("other user's id", `${user}: ${method} over a WebSocket`, fault);
    }
  }
  for (const user of ["thrower", "denied"] as const)
    for (const answer of await overSocket(server.url, theirs.thread_id, by(user), commands)) {
      const isClosed = /^closed 4[45]\d\d /.test(answer) && !answer.includes("canary");
      matrix.cell(
        user === "thrower" ? "handler that throws" : "handler that refuses",
        "WebSocket",
        isClosed ? "" : answer,
      );
    }
  for (const headers of [{}, by("faulty")]) {
    const { status, text } = await handshake(
      server.url,
      `/threads/${theirs.thread_id}/stream/events`,
      headers,
    );
    matrix.cell(
      "no user",
      "WebSocket",
      status === 401 && !text.includes("canary") ? "" : `${status} ${text}`,
    );
  }
  expect(matrix.takeLeaks()).toEqual([]);
});

test("none of these requests changed the other user's records, and their owner still finds them", async () => {
  const { thread_id, run_id, assistant_id, cron_id, key, checkpoint_id } = theirs;
  expect(await made("them", "GET", `/threads/${thread_id}/runs/${run_id}`)).toMatchObject({
    status: "pending",
  });
  expect(await made("them", "GET", `/assistants/${assistant_id}`)).toMatchObject({
    version: 1,
    name: CANARY,
  });
  expect(await made("them", "GET", `/runs/crons/${cron_id}`)).toMatchObject({ enabled: true });
  expect(await made("them", "GET", `/threads/${thread_id}/state`)).toMatchObject({
    checkpoint: { checkpoint_id },
  });
  expect(await made("them", "GET", `/store/items?namespace=memories&key=${key}`)).toMatchObject({
    value: { tag: CANARY },
  });
});
