import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { STREAM_MODES } from "../../src/events/mode-names.ts";
import { newId } from "../../src/lib/ids.ts";
import { apiOf, type Answer, type Api, type Refusal } from "../helpers/api.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";

/** Which stream modes requests may name. What they stream is in test/events/modes.test.ts. */

let server: TestServer;
let api: Api;
let threadId: string;
let cronId: string;
beforeAll(async () => {
  server = await startTestServer({ role: "api" });
  api = apiOf(server);
  threadId = await api.aThread();
  const { body } = await api.post<{ cron_id: string }>("/runs/crons", CRON);
  cronId = body.cron_id;
});
afterAll(() => server.close());

const CRON = { assistant_id: "agent", schedule: "0 0 1 1 *", input: {} };
const NO_RUN = { assistant_id: newId(), input: {} };
/** Runs wait for long, so that no test depends on their end. */
const RUN = { assistant_id: "agent", input: {}, after_seconds: 3_600 };

type Ask = (mode: unknown) => Promise<Answer<Refusal>>;
const CREATING: [string, Ask][] = [
  ["POST /threads/{id}/runs", (mode) => api.post(`/threads/${threadId}/runs`, { ...RUN, stream_mode: mode })],
  ["POST /runs", (mode) => api.post("/runs", { ...RUN, stream_mode: mode })],
  ["POST /runs/batch", (mode) => api.post("/runs/batch", [RUN, { ...RUN, stream_mode: mode }])],
  ["POST /runs/crons", (mode) => api.post("/runs/crons", { ...CRON, stream_mode: mode })],
  [
    "POST /threads/{id}/runs/crons",
    (mode) => api.post(`/threads/${threadId}/runs/crons`, { ...CRON, stream_mode: mode }),
  ],
  ["PATCH /runs/crons/{id}", (mode) => api.patch(`/runs/crons/${cronId}`, { stream_mode: mode })],
];
/** Their answers wait for the run: of an assistant that is not there, they are a 404 if the mode is taken. */
const WAITING: [string, Ask][] = [
  ...["stream", "wait"].flatMap((kind): [string, Ask][] => [
    [`POST /runs/${kind}`, (mode) => api.post(`/runs/${kind}`, { ...NO_RUN, stream_mode: mode })],
    [
      `POST /threads/{id}/runs/${kind}`,
      (mode) => api.post(`/threads/${threadId}/runs/${kind}`, { ...NO_RUN, stream_mode: mode }),
    ],
  ]),
  [
    "GET /threads/{id}/runs/{id}/stream",
    (mode) => api.get(`/threads/${threadId}/runs/${newId()}/stream?stream_mode=${String(mode)}`),
  ],
  ["GET /runs/{id}/stream", (mode) => api.get(`/runs/${newId()}/stream?stream_mode=${String(mode)}`)],
];

describe.each([...CREATING, ...WAITING])("%s", (_, ask) => {
  test.each([
    ["vallues", "values"],
    ["Values", "values"],
    ["update", "updates"],
    ["messages_tuple", "messages-tuple"],
    ["messagesTuple", "messages-tuple"],
    ["checkpoint", "checkpoints"],
  ])("refuses '%s' by a sentence that names '%s' and all modes", async (mode, meant) => {
    const { status, body } = await ask(mode);
    expect([status, body.detail]).toEqual([
      422,
      expect.stringContaining(
        `stream_mode': '${mode}' is no stream mode, did you mean '${meant}'? The modes are ${STREAM_MODES.join(", ")}.`,
      ),
    ]);
  });
});

describe.each(CREATING)("%s", (_, ask) => {
  test("refuses a misspelt mode among others", async () => {
    const { status, body } = await ask(["values", "udpates"]);
    expect([status, body.detail]).toEqual([422, expect.stringContaining("did you mean 'updates'?")]);
  });

  const known: { mode: unknown }[] = [...STREAM_MODES, STREAM_MODES, [], null].map((mode) => ({ mode }));
  test.each(known)("takes the mode $mode", async ({ mode }) => {
    expect((await ask(mode)).status).toBeLessThan(300);
  });

  test.each(["agents", "todos", "messages-v2", "state_update", "a2a"])(
    "takes '%s', as of a client that is newer than the server",
    async (mode) => {
      expect((await ask(mode)).status).toBeLessThan(300);
    },
  );
});

test("a stream of a thread refuses a misspelt mode of its own", async () => {
  for (const name of ["stream_mode", "stream_modes"]) {
    const { status, body } = await api.get<Refusal>(`/threads/${newId()}/stream?${name}=life-cycle`);
    expect([status, body.detail]).toEqual([
      422,
      `'${name}': 'life-cycle' is no stream mode, did you mean 'lifecycle'? The modes are run_modes, lifecycle, state_update.`,
    ]);
  }
});
