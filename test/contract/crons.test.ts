import { afterAll, beforeAll } from "vitest";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { testOperations } from "./answers.ts";
import { MISSING, wireOf } from "./wire.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

const wire = wireOf(() => server.url);
const { send } = wire;

/** Once a year, and never after 2040. */
const YEARLY = {
  assistant_id: "two-step",
  schedule: "0 0 1 1 *",
  timezone: "Europe/Berlin",
  end_time: "2040-01-01T00:00:00Z",
  input: { messages: [] },
  metadata: { a: 1 },
};
const aCron = async (): Promise<string> => (await wire.must("POST /runs/crons", YEARLY))["cron_id"]!;

testOperations("Crons", wire, {
  "POST /threads/{thread_id}/runs/crons": {
    200: async () => send(`POST /threads/${await wire.aThread()}/runs/crons`, YEARLY),
    404: () => send(`POST /threads/${MISSING}/runs/crons`, YEARLY),
    422: async () => send(`POST /threads/${await wire.aThread()}/runs/crons`, { assistant_id: "agent" }),
  },
  "POST /runs/crons": {
    200: () => send("POST /runs/crons", YEARLY),
    404: () => send("POST /runs/crons", { ...YEARLY, assistant_id: MISSING }),
    422: () => send("POST /runs/crons", { ...YEARLY, schedule: "every day" }),
  },
  "POST /runs/crons/search": {
    200: async () => {
      await aCron();
      return send("POST /runs/crons/search", { enabled: true, sort_by: "next_run_date" });
    },
    422: () => send("POST /runs/crons/search", { limit: 0 }),
  },
  "POST /runs/crons/count": {
    200: () => send("POST /runs/crons/count", { metadata: { a: 1 } }),
    404: () => send("POST /runs/crons/count", { assistant_id: MISSING }),
    422: () => send("POST /runs/crons/count", { thread_id: "first" }),
  },
  "GET /runs/crons/{cron_id}": {
    200: async () => send(`GET /runs/crons/${await aCron()}`),
    404: () => send(`GET /runs/crons/${MISSING}`),
    422: () => send("GET /runs/crons/first"),
  },
  "PATCH /runs/crons/{cron_id}": {
    200: async () => send(`PATCH /runs/crons/${await aCron()}`, { enabled: false, schedule: "0 0 2 1 *" }),
    404: () => send(`PATCH /runs/crons/${MISSING}`, { enabled: false }),
    422: async () => send(`PATCH /runs/crons/${await aCron()}`, { schedule: "every day" }),
  },
  "DELETE /runs/crons/{cron_id}": {
    200: async () => send(`DELETE /runs/crons/${await aCron()}`),
    404: () => send(`DELETE /runs/crons/${MISSING}`),
    422: () => send("DELETE /runs/crons/first"),
  },
});
