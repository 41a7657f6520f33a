import { pathWith, type Expected } from "../route-table.ts";
import type { Asked } from "./cells.ts";

/** By the names of the path parameters. */
export interface Ids {
  thread_id: string;
  run_id: string;
  checkpoint_id: string;
  assistant_id: string;
  cron_id: string;
  event_id: string;
  /** Of a store item in the user's own namespace. */
  key: string;
}

export const RUN = { assistant_id: "agent", input: { messages: [{ role: "user", content: "hi" }] } };

export const requestFor = (route: string, { body, query = "" }: Expected, ids: Ids): Asked => {
  const [method = "", path = ""] = route.split(" ");
  const all: Record<string, string> = { ...ids, task: `${ids.thread_id}:${ids.run_id}` };
  const isRun = typeof body === "object" && body !== null && "assistant_id" in body;
  return {
    method,
    path: `${pathWith(path, (name) => all[name] ?? "nowhere")}${query}`,
    body: isRun ? { ...body, ...RUN } : body,
  };
};

const post = (path: string, body: unknown): Asked => ({ method: "POST", path, body });
const rpc = (path: string, method: string, params: unknown): Asked =>
  post(path, { jsonrpc: "2.0", id: 1, method, params });
const accepting = (asked: Asked): Asked => ({
  ...asked,
  headers: { accept: "application/json, text/event-stream" },
});
const tool = (name: string, given: object) =>
  accepting(rpc("/mcp", "tools/call", { name, arguments: { ...RUN.input, ...given } }));
const message = (given: object) => ({
  message: { role: "user", messageId: "m", parts: [{ kind: "text", text: "hi" }], ...given },
});
const ofTask = ({ thread_id, run_id }: Ids) => ({ id: `${thread_id}:${run_id}` });
const input = (threadId: string) => ({
  ...{ threadId, runId: "mine", state: {}, tools: [], context: [], forwardedProps: {} },
  messages: [{ id: "m", role: "user", content: "hi" }],
  protocolVersion: "1.0",
});

/** Requests of other protocols that make a run on a thread, and the thread if it is missing. */
export const threadMakers = (threadId: string): Record<string, Asked> => ({
  "a call of a tool": tool("agent", { thread_id: threadId }),
  "a message of A2A": rpc("/a2a/agent", "message/send", message({ contextId: threadId })),
  "a run of AG-UI": post("/agui/agent", input(threadId)),
});

/** Requests that name another user's records in the body, the query or a header, or below an own record. */
export const furtherRequests = (own: Ids): Record<string, (ids: Ids) => Asked & { isEndless?: true }> => {
  const get = (path: string, headers?: Record<string, string>): Asked =>
    headers === undefined ? { method: "GET", path } : { method: "GET", path, headers };
  const mine = `/threads/${own.thread_id}`;
  const withAssistant = ({ assistant_id }: Ids) => ({ ...RUN, assistant_id });
  return {
    "prune it": ({ thread_id }) => post("/threads/prune", { thread_ids: [thread_id] }),
    "cancel its run": ({ run_id }) => post("/runs/cancel", { run_ids: [run_id] }),
    "cancel its run by its thread": ({ thread_id, run_id }) =>
      post("/runs/cancel", { thread_id, run_ids: [run_id] }),
    "search threads by id": ({ thread_id }) => post("/threads/search", { ids: [thread_id] }),
    "count threads by id": ({ thread_id }) => post("/threads/count", { ids: [thread_id] }),
    "search crons by thread": ({ thread_id }) => post("/runs/crons/search", { thread_id }),
    "search crons by assistant": ({ assistant_id }) => post("/runs/crons/search", { assistant_id }),
    "count crons by assistant": ({ assistant_id }) => post("/runs/crons/count", { assistant_id }),
    "wait for its assistant": (ids) => post("/runs/wait", withAssistant(ids)),
    "stream its assistant": (ids) => post("/runs/stream", withAssistant(ids)),
    "start its assistant": (ids) => post("/runs", withAssistant(ids)),
    "start its assistant in a batch": (ids) => post("/runs/batch", [withAssistant(ids)]),
    "run its assistant on a thread of mine": (ids) => post(`${mine}/runs/wait`, withAssistant(ids)),
    "schedule its assistant": (ids) => post("/runs/crons", { ...withAssistant(ids), schedule: "0 9 * * *" }),
    "schedule its assistant on a thread of mine": (ids) =>
      post(`${mine}/runs/crons`, { ...withAssistant(ids), schedule: "0 9 * * *" }),
    "command its assistant": (ids) =>
      post(`${mine}/commands`, { id: 1, method: "run.start", params: withAssistant(ids) }),
    "go on from its checkpoint": ({ checkpoint_id }) => post(`${mine}/runs/wait`, { ...RUN, checkpoint_id }),
    "fork its checkpoint": ({ checkpoint_id }) =>
      post(`${mine}/commands`, { id: 1, method: "state.fork", params: { checkpoint_id, input: {} } }),
    "read its checkpoint": ({ checkpoint_id }) => get(`${mine}/state/${checkpoint_id}`),
    "post its checkpoint": ({ checkpoint_id }) =>
      post(`${mine}/state/checkpoint`, { checkpoint: { checkpoint_id } }),
    "update at its checkpoint": ({ checkpoint_id }) => post(`${mine}/state`, { values: {}, checkpoint_id }),
    "history before its checkpoint": ({ checkpoint_id }) => get(`${mine}/history?before=${checkpoint_id}`),
    "posted history before its checkpoint": ({ checkpoint_id }) =>
      post(`${mine}/history`, { before: { configurable: { checkpoint_id } } }),
    "checkpoints before its checkpoint": ({ checkpoint_id }) =>
      post(`${mine}/commands`, { id: 1, method: "state.listCheckpoints", params: { before: checkpoint_id } }),
    "read its run on my thread": ({ run_id }) => get(`${mine}/runs/${run_id}`),
    "join its run on my thread": ({ run_id }) => get(`${mine}/runs/${run_id}/join`),
    "stream its run on my thread": ({ run_id }) => get(`${mine}/runs/${run_id}/stream`),
    "cancel its run on my thread": ({ run_id }) => post(`${mine}/runs/${run_id}/cancel`, undefined),
    "delete its run on my thread": ({ run_id }) => ({ method: "DELETE", path: `${mine}/runs/${run_id}` }),
    "the tree of its run on my thread": ({ run_id }) =>
      post(`${mine}/commands`, { id: 1, method: "agent.getTree", params: { run_id } }),
    "stream my thread after its event": ({ event_id }) => ({
      ...get(`${mine}/stream`, { "last-event-id": event_id }),
      isEndless: true,
    }),
    "its item of the store": ({ key }) => get(`/store/items?namespace=memories&key=${key}`),
    "its item by its own namespace": ({ key }) => get(`/store/items?namespace=them.memories&key=${key}`),
    "delete its item": ({ key }) => ({
      method: "DELETE",
      path: "/store/items",
      body: { namespace: ["them", "memories"], key },
    }),
    "search its namespace": () => post("/store/items/search", { namespace_prefix: ["them"] }),
    "namespaces below its own": () => post("/store/namespaces", { prefix: ["them"] }),
    "call its assistant as a tool": ({ assistant_id }) => tool(assistant_id, {}),
    "send to its assistant by A2A": ({ assistant_id }) =>
      rpc(`/a2a/${assistant_id}`, "message/send", message({})),
    "answer its task": ({ thread_id, run_id }) =>
      rpc("/a2a/agent", "message/send", message({ taskId: `${thread_id}:${run_id}` })),
    "get its task": (ids) => rpc("/a2a/agent", "tasks/get", ofTask(ids)),
    "cancel its task": (ids) => rpc("/a2a/agent", "tasks/cancel", ofTask(ids)),
    "subscribe to its task": (ids) => rpc("/a2a/agent", "tasks/resubscribe", ofTask(ids)),
    "the card of its assistant": ({ assistant_id }) =>
      get(`/.well-known/agent-card.json?assistant_id=${assistant_id}`),
    "run its assistant by AG-UI": ({ assistant_id }) => post(`/agui/${assistant_id}`, input(own.thread_id)),
  };
};
