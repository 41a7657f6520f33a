import { afterAll, beforeAll, expect, test } from "vitest";
import type { Authorize } from "../../src/access/authorize.ts";
import { grantVisibility } from "../../src/access/visibility.ts";
import { newId } from "../../src/platform/lib/ids.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { ROUTES } from "./route-table.ts";
import { createAuthenticate } from "../helpers/access.ts";

/** Each route is called by one user for the records of another. A new route is covered by its line in the table. */

const KEYS = { me: "canary-5a0e-mine", them: "canary-8b3d-theirs" };
type Owner = keyof typeof KEYS;

const authenticate = createAuthenticate(Object.values(KEYS));
const idOf = (owner: Owner): string => {
  const caller = authenticate({ method: "GET", url: "/info", headers: { "x-api-key": KEYS[owner] } });
  return caller.kind === "key" ? caller.id : "";
};

/** Each caller sees its own records, and all callers see the assistants of the graphs. */
const authorize: Authorize = async (caller, resource, _action, value) =>
  caller.kind !== "key" || resource === "store"
    ? grantVisibility(resource, undefined, value)
    : grantVisibility(
        resource,
        (metadata, parameter) =>
          `${metadata} ->> 'owner' = ${parameter(caller.id)} or ${metadata} ->> 'created_by' = 'system'`,
        value,
      );

let server: TestServer;
/** By the names of the path parameters. */
type Ids = Record<string, string>;
let theirs: Ids;
const missing: Ids = {
  thread_id: newId(),
  run_id: newId(),
  checkpoint_id: newId(),
  assistant_id: newId(),
  namespace: "nowhere",
  cron_id: newId(),
};

const send = async (owner: Owner, method: string, path: string, body?: unknown) => {
  const answer = await fetch(`${server.url}${path}`, {
    method,
    headers: {
      "x-api-key": KEYS[owner],
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: answer.status, text: await answer.text() };
};
const made = async (path: string, body: unknown): Promise<Record<string, string>> =>
  JSON.parse((await send("them", "POST", path, body)).text);

const RUN = { assistant_id: "agent", input: { messages: [{ role: "user", content: "hi" }] } };

beforeAll(async () => {
  server = await startTestServer({ apiKeys: Object.values(KEYS), authorize });
  const metadata = { owner: idOf("them") };
  const { assistant_id = "" } = await made("/assistants", { graph_id: "agent", metadata });
  const { thread_id = "" } = await made("/threads", { metadata });
  await made(`/threads/${thread_id}/runs/wait`, RUN);
  const { run_id = "" } = await made(`/threads/${thread_id}/runs`, { ...RUN, after_seconds: 3_600 });
  const state = await send("them", "GET", `/threads/${thread_id}/state`);
  const { checkpoint_id } = JSON.parse(state.text).checkpoint;
  const { cron_id = "" } = await made("/runs/crons", { ...RUN, schedule: "0 9 * * *", metadata });
  theirs = { assistant_id, thread_id, run_id, checkpoint_id, namespace: "nowhere", cron_id };
});
afterAll(async () => {
  await server.close();
});

test.each(
  Object.entries(ROUTES).filter(
    ([route, { isEndless }]) => !isEndless && /:(thread|run|assistant|cron)_id/.test(route),
  ),
)("%s gives the same answer for a hidden record and a missing one", async (route, { body }) => {
  const [method = "", path = ""] = route.split(" ");
  const asked =
    typeof body === "object" && body !== null && "assistant_id" in body ? { ...body, ...RUN } : body;
  const ask = async (ids: Ids) =>
    await send(
      "me",
      method,
      path.replace(/:(\w+)/g, (_parameter, name: string) => ids[name] ?? "none"),
      asked,
    );
  const [hidden, none] = [await ask(theirs), await ask(missing)];
  expect([hidden.status, none.status]).toEqual([404, 404]);
  const named = Object.entries(missing).reduce(
    (text, [name, id]) => text.replaceAll(id, theirs[name] ?? ""),
    none.text,
  );
  expect(hidden.text).toBe(named);
});

test("the hidden records are unchanged, and their owner still finds them", async () => {
  const { thread_id, run_id, assistant_id, cron_id } = theirs;
  const cron = await send("them", "GET", `/runs/crons/${cron_id}`);
  expect(JSON.parse(cron.text)).toMatchObject({ enabled: true });
  const run = await send("them", "GET", `/threads/${thread_id}/runs/${run_id}`);
  expect(JSON.parse(run.text)).toMatchObject({ status: "pending" });
  const assistant = await send("them", "GET", `/assistants/${assistant_id}`);
  expect(JSON.parse(assistant.text)).toMatchObject({ version: 1 });
  expect((await send("them", "GET", `/threads/${thread_id}/history`)).text).toContain(theirs.checkpoint_id);
});

test.each(["/threads/search", "/assistants/search", "/runs/search", "/runs/crons/search"])(
  "%s omits hidden records",
  async (path) => {
    const found = await send("me", "POST", path, {});
    for (const id of [theirs.thread_id, theirs.run_id, theirs.assistant_id, theirs.cron_id])
      expect(found.text).not.toContain(id);
    const whose = await send("them", "POST", path, {});
    expect(whose.text).toMatch(
      new RegExp([theirs.thread_id, theirs.run_id, theirs.assistant_id, theirs.cron_id].join("|")),
    );
  },
);
