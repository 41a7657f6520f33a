import { afterAll, beforeAll } from "vitest";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { testOperations } from "./answers.ts";
import { MISSING, SHORT, wireOf, type WireAnswer } from "./wire.ts";

let server: TestServer;
beforeAll(async () => {
  // Room for the runs that run until the end, and for others.
  server = await startTestServer({ jobsPerWorker: 30 });
});
afterAll(async () => {
  await wire.cancelAll();
  await server.close();
});

const wire = wireOf(() => server.url);
const { send } = wire;

/** A run of a thread; `of` appends the rest of its path. */
const pathOf = ({ threadId, runId }: { threadId: string; runId: string }): string =>
  `/threads/${threadId}/runs/${runId}`;
const theFinished = async (): Promise<string> => pathOf(await wire.aFinishedRun());
const aMissing = async (): Promise<string> => pathOf({ threadId: await wire.aThread(), runId: MISSING });
const aMisnamed = async (): Promise<string> => pathOf({ threadId: await wire.aThread(), runId: "first" });

/** Creation on a thread, by each of its three paths. */
const creation = (path: string) => ({
  200: async () => send(`POST /threads/${await wire.aThread()}${path}`, SHORT),
  404: () => send(`POST /threads/${MISSING}${path}`, SHORT),
  409: async (): Promise<WireAnswer> => {
    const threadId = await wire.aThread();
    await wire.aLongRun(threadId);
    return send(`POST /threads/${threadId}${path}`, { ...SHORT, multitask_strategy: "reject" });
  },
  422: async () => send(`POST /threads/${await wire.aThread()}${path}`, { ...SHORT, after_seconds: "soon" }),
});
/** A run on the thread that the body names, while another one is running. */
const onABusyThread = async () => {
  const threadId = await wire.aThread();
  await wire.aLongRun(threadId);
  return { ...SHORT, thread_id: threadId, multitask_strategy: "reject" };
};
const threadless = (path: string) => ({
  200: () => send(`POST ${path}`, SHORT),
  404: () => send(`POST ${path}`, { ...SHORT, assistant_id: MISSING }),
  409: async () => send(`POST ${path}`, await onABusyThread()),
  422: () => send(`POST ${path}`, {}),
});

testOperations("Runs", wire, {
  "POST /threads/{thread_id}/runs": creation("/runs"),
  "POST /threads/{thread_id}/runs/stream": creation("/runs/stream"),
  "POST /threads/{thread_id}/runs/wait": creation("/runs/wait"),
  "POST /runs": threadless("/runs"),
  "POST /runs/stream": threadless("/runs/stream"),
  "POST /runs/wait": threadless("/runs/wait"),
  "POST /runs/batch": {
    200: () => send("POST /runs/batch", [SHORT, SHORT]),
    404: () => send("POST /runs/batch", [SHORT, { ...SHORT, assistant_id: MISSING }]),
    409: async () => send("POST /runs/batch", [await onABusyThread()]),
    422: () => send("POST /runs/batch", []),
  },
  "GET /threads/{thread_id}/runs": {
    200: async () =>
      send(`GET /threads/${(await wire.aFinishedRun()).threadId}/runs?limit=10&status=success`),
    404: () => send(`GET /threads/${MISSING}/runs`),
    422: async () => send(`GET /threads/${await wire.aThread()}/runs?status=lost`),
  },
  "GET /threads/{thread_id}/runs/{run_id}": {
    200: async () => send(`GET ${await theFinished()}`),
    404: async () => send(`GET ${await aMissing()}`),
    422: async () => send(`GET ${await aMisnamed()}`),
  },
  "DELETE /threads/{thread_id}/runs/{run_id}": {
    200: async () => send(`DELETE ${await theFinished()}`),
    404: async () => send(`DELETE ${await aMissing()}`),
    422: async () => send(`DELETE ${await aMisnamed()}`),
  },
  "GET /threads/{thread_id}/runs/{run_id}/join": {
    200: async () => send(`GET ${await theFinished()}/join?cancel_on_disconnect=0`),
    404: async () => send(`GET ${await aMissing()}/join`),
    422: async () => send(`GET ${await aMisnamed()}/join`),
  },
  "GET /threads/{thread_id}/runs/{run_id}/stream": {
    200: async () => send(`GET ${await theFinished()}/stream?stream_mode=values`),
    404: async () => send(`GET ${await aMissing()}/stream`),
    422: async () => send(`GET ${await aMisnamed()}/stream`),
  },
  "POST /threads/{thread_id}/runs/{run_id}/cancel": {
    200: async () => {
      const threadId = await wire.aThread();
      return send(`POST ${pathOf({ threadId, runId: await wire.aLongRun(threadId) })}/cancel`);
    },
    404: async () => send(`POST ${await aMissing()}/cancel`),
    422: async () => send(`POST ${await theFinished()}/cancel?action=forget`),
  },
  "POST /runs/cancel": {
    204: async () => {
      const threadId = await wire.aThread();
      const runId = await wire.aLongRun(threadId);
      return send("POST /runs/cancel?action=interrupt", { thread_id: threadId, run_ids: [runId] });
    },
    404: async () => send("POST /runs/cancel", { thread_id: await wire.aThread(), run_ids: [MISSING] }),
    422: () => send("POST /runs/cancel", { status: "lost" }),
  },
});
