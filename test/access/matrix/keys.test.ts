import { afterAll, beforeAll, expect, test } from "vitest";
import { scopeNeeded } from "../../../src/access/keys/scopes.ts";
import { hashOf, idOf, makeKey } from "../../../src/access/keys/key-text.ts";
import type { KeyScope } from "../../../src/access/caller.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { MISSING, missingPath, ROUTES, WITHOUT_EVENTS } from "../route-table.ts";
import { createMatrix, difference, handshake, overSocket, send, type Answer, type Asked } from "./cells.ts";

/** Every route with every kind of key that must not open it. */

const KEYS = {
  admin: makeKey(),
  run: makeKey(),
  read: makeKey(),
  /** Its scope grants nothing on these routes. */
  none: makeKey(),
  expired: makeKey(),
  revoked: makeKey(),
};
const WRONG = "canary-51c2-wrong-key";
const matrix = createMatrix();

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
  const insert = async (name: string, key: string, scopes: string[], more: string) =>
    await query(
      server,
      `insert into threadloom.api_keys (key_id, key_hash, name, scopes, expires_at, revoked_at)
       select $1, $2, $3, $4, ${more}`,
      [idOf(hashOf(key)), hashOf(key), name, scopes],
    );
  for (const scope of ["admin", "run", "read"] as const)
    await insert(scope, KEYS[scope], [scope], "null, null");
  await insert("none", KEYS.none, ["a scope to come"], "null, null");
  await insert("expired", KEYS.expired, ["admin"], "now() - interval '1 second', null");
  await insert("revoked", KEYS.revoked, ["admin"], "null, now()");
  await eventually("the server knows the keys", async () => {
    const { status } = await fetch(`${server.url}/openapi.json`, { headers: { "x-api-key": KEYS.admin } });
    return status === 200 && (await fetch(`${server.url}/openapi.json`)).status === 401;
  });
});
afterAll(async () => {
  process.stdout.write(matrix.summary());
  await server.close();
});

const RANK: readonly KeyScope[] = ["read", "run", "admin"];
/** The scope that all events of a route require; undefined if no scope has them all. */
const scopeOf = (events: readonly string[]): KeyScope | undefined =>
  events
    .map((event) => {
      const [resource = "", action = ""] = event.split(":");
      return scopeNeeded(resource as "threads", action as "read");
    })
    .toSorted((one, other) => RANK.indexOf(other) - RANK.indexOf(one))[0];

/** A key whose scopes just miss the required one. */
const tooNarrowFor = (scope: KeyScope): string =>
  ({ read: KEYS.none, run: KEYS.read, admin: KEYS.run })[scope];

const rows = Object.entries(ROUTES).map(([route, expected]) => {
  const [method = "", path = ""] = route.split(" ");
  const asked: Asked = {
    method,
    path: `${missingPath(path)}${expected.query ?? ""}`,
    body: expected.body,
  };
  return { route, asked, ...expected };
});

test("each route has a rule: events, or a reason why it needs none", () => {
  const without = rows.filter(({ events }) => events.length === 0).map(({ route }) => route);
  expect(without.toSorted()).toEqual(Object.keys(WITHOUT_EVENTS).toSorted());
});

const refusal = (status: number, detail: string): string => `${status} ${JSON.stringify({ detail })}`;
const NO_KEY = refusal(401, "This server needs an API key: send it as X-Api-Key or Authorization: Bearer.");
const UNKNOWN = refusal(403, "The API key is not known to this server.");
const shown = ({ status, text }: Answer): string => `${status} ${text}`;
const isNot = (answer: Answer, expected: string): string =>
  shown(answer) === expected ? "" : shown(answer).slice(0, 200);

test("without a key, or with a wrong, expired or revoked one, a route answers nothing but the refusal", async () => {
  for (const { route, asked, isEndless } of rows) {
    if (WITHOUT_EVENTS[route] === "open") continue;
    const ask = async (headers: Record<string, string>) =>
      await send(server.url, { ...asked, headers }, { isEndless });
    matrix.cell("no key", route, isNot(await ask({}), NO_KEY));
    const wrong = await ask({ "x-api-key": WRONG });
    matrix.cell("wrong key", route, isNot(wrong, UNKNOWN));
    // The text is the same, so the holder of an old key does not learn that it was once valid.
    for (const kind of ["expired", "revoked"] as const)
      for (const headers of [
        { "x-api-key": KEYS[kind] },
        { authorization: `Bearer ${KEYS[kind]}` },
      ] as Record<string, string>[])
        matrix.cell(`${kind} key`, route, difference(await ask(headers), wrong));
  }
  expect(matrix.takeLeaks()).toEqual([]);
});

test("with a key that is too narrow each route names the missing scope; with a wide enough key it answers", async () => {
  for (const { route, asked, events, isEndless } of rows) {
    const scope = scopeOf(events);
    if (scope === undefined) continue;
    const answer = await send(
      server.url,
      { ...asked, headers: { "x-api-key": tooNarrowFor(scope) } },
      { isEndless },
    );
    const sentence =
      /^403 \{"detail":"This API key may not do that: '[a-z_:]+' needs the scope '(\w+)'\."\}$/;
    const named = sentence.exec(shown(answer))?.[1];
    matrix.cell("too narrow a key", route, named === undefined ? shown(answer).slice(0, 200) : "");
    const wide = await send(server.url, { ...asked, headers: { "x-api-key": KEYS[scope] } }, { isEndless });
    const isAnswered = [200, 204, 404].includes(wide.status);
    matrix.cell("a key that fits", route, isAnswered ? "" : shown(wide).slice(0, 200));
  }
  expect(matrix.takeLeaks()).toEqual([]);
});

const SOCKET = `/threads/${MISSING}/stream/events`;
const RUN = { assistant_id: "agent", input: {} };
/** Commands and subscriptions to a thread that waits for an answer, each with the scope that it needs. */
const commandsFor = ({ interruptId, checkpointId }: Record<"interruptId" | "checkpointId", string>) =>
  [
    ["subscription.subscribe", { channels: ["values"] }, "read"],
    ["run.start", RUN, "run"],
    ["input.respond", { namespace: [], interrupt_id: interruptId, response: true }, "run"],
    ["state.get", { namespace: [] }, "read"],
    ["state.listCheckpoints", {}, "read"],
    ["state.fork", { checkpoint_id: checkpointId, input: {} }, "run"],
    ["agent.getTree", {}, "read"],
  ] as const;

const asAdmin = async (method: string, path: string, body?: unknown): Promise<unknown> =>
  JSON.parse((await send(server.url, { method, path, body, headers: { "x-api-key": KEYS.admin } })).text);

const aQuestion = async () => {
  const { thread_id: threadId } = (await asAdmin("POST", "/threads", {})) as { thread_id: string };
  const input = { messages: [{ role: "user", content: "hi" }] };
  await asAdmin("POST", `/threads/${threadId}/runs/wait`, { assistant_id: "approval", input });
  const state = (await asAdmin("GET", `/threads/${threadId}/state`)) as {
    checkpoint: { checkpoint_id: string };
    tasks: { interrupts: { id: string }[] }[];
  };
  const interruptId = state.tasks.flatMap(({ interrupts }) => interrupts)[0]?.id ?? "";
  return { threadId, interruptId, checkpointId: state.checkpoint.checkpoint_id };
};

test("a valid key opens a WebSocket, however it is sent, and each command requires its scope", async () => {
  const wanted = {
    [WRONG]: 403,
    [KEYS.expired]: 403,
    [KEYS.revoked]: 403,
    [KEYS.none]: 101,
    [KEYS.read]: 101,
  };
  matrix.cell("no key", "WebSocket", isNot(await handshake(server.url, SOCKET), NO_KEY));
  for (const [key, status] of Object.entries(wanted)) {
    const ways = [
      await handshake(server.url, SOCKET, { "x-api-key": key }),
      await handshake(server.url, SOCKET, { authorization: `Bearer ${key}` }),
      await handshake(server.url, SOCKET, {}, [`x-api-key.${key}`]),
      await handshake(server.url, `${SOCKET}?api_key=${key}`),
    ];
    for (const [way, answer] of ways.entries()) {
      const fault = status === 101 ? (answer.status === 101 ? "" : shown(answer)) : isNot(answer, UNKNOWN);
      matrix.cell(status === 101 ? "a key that fits" : "wrong key", `WebSocket, way ${way}`, fault);
    }
  }
  const question = await aQuestion();
  const commands = commandsFor(question);
  for (const [key, scopes] of [
    [KEYS.none, []],
    [KEYS.read, ["read"]],
  ] as const) {
    const asked = commands.map(([method, params]) => [method, params] as const);
    const answers = await overSocket(server.url, question.threadId, { "x-api-key": key }, asked);
    for (const [index, [method, , scope]] of commands.entries()) {
      const isRefused = /"error":"permission_denied"|^closed 4403 /.test(answers[index] ?? "");
      const may = (scopes as readonly string[]).includes(scope);
      matrix.cell("too narrow a key", `${method} over a WebSocket`, may === isRefused ? answers[index] : "");
    }
  }
  expect(matrix.takeLeaks()).toEqual([]);
});

test("after a key is revoked, its open socket refuses the next command and subscription", async () => {
  const [key, second] = [makeKey(), makeKey()];
  for (const [name, one] of [
    ["brief", key],
    ["brief, too", second],
  ] as const)
    await query(
      server,
      "insert into threadloom.api_keys (key_id, key_hash, name, scopes) values ($1, $2, $3, '{read}')",
      [idOf(hashOf(one)), hashOf(one), name],
    );
  const statusWith = async () =>
    (await fetch(`${server.url}/openapi.json`, { headers: { "x-api-key": key } })).status;
  await eventually("the key is known", async () => (await statusWith()) === 200);
  const { default: WebSocket } = await import("ws");
  const socket = new WebSocket(`${server.url.replace("http", "ws")}${SOCKET}`, {
    headers: { "x-api-key": key },
  });
  await new Promise((resolve) => socket.on("open", resolve));
  const ask = async (id: number, method: string, params: object): Promise<string> => {
    const answer = new Promise<string>((resolve) =>
      socket.once("message", (data) => resolve(String(data as Buffer))),
    );
    socket.send(JSON.stringify({ id, method, params }));
    return await answer;
  };
  expect(await ask(1, "subscription.subscribe", { channels: ["values"] })).toContain('"success"');
  await query(server, "update threadloom.api_keys set revoked_at = now() where key_id = $1", [
    idOf(hashOf(key)),
  ]);
  await eventually("the key is refused", async () => (await statusWith()) === 403);
  for (const [method, params] of [
    ["agent.getTree", {}],
    ["subscription.subscribe", { channels: ["values"] }],
  ] as const) {
    const answer = await ask(2, method, params);
    matrix.cell(
      "revoked key",
      `${method} over an open WebSocket`,
      answer.includes("permission_denied") ? "" : answer,
    );
  }
  socket.terminate();
  expect(matrix.takeLeaks()).toEqual([]);
});

test("no key of the matrix appears in the log", () => {
  const log = server.lines.join("");
  for (const key of [...Object.values(KEYS), WRONG]) expect(log).not.toContain(key);
});
