import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { dataOf, readStream } from "../../helpers/server-sent-events.ts";
import { onServer } from "../../helpers/servers.ts";

const graphConfigFile = fileURLToPath(new URL("./graphs/langgraph.json", import.meta.url));

let server: TestServer;
let api: Api;
onServer({ graphConfigFile }, (opened) => ({ server, api } = opened));

const odd = (way: unknown) => ({ assistant_id: "odd", input: { way } });
/** The part of a state that contains the error. */
interface StateWithError {
  tasks: unknown[];
}

describe("an error thrown by a graph", () => {
  test("is cut to ten thousand characters in the result, the thread, its state and its history", async () => {
    const threadId = await api.aThread();
    const { __error__: error } = await api.aFinishedRun(threadId, odd(5_000_000));
    expect(error).toEqual({
      error: "Error",
      message: expect.stringMatching(/^e{10000}… \(5000000 characters, cut\)$/),
    });
    for (const path of ["", "/state", "/history", "/runs"]) {
      const { status, text } = await api.get(`/threads/${threadId}${path}`);
      expect(status).toBe(200);
      expect(text.length).toBeLessThan(50_000);
    }
  });

  test.each([
    ["text", "only a text, isn't it?"],
    ["nothing", "undefined"],
  ])("is kept as it is if it is not an Error (%s)", async (way, message) => {
    const threadId = await api.aThread();
    const { __error__: error } = await api.aFinishedRun(threadId, odd(way));
    expect(error).toEqual({ error: "Error", message });
    expect((await api.thread(threadId)).error).toEqual(error);
    const { body } = await api.get<StateWithError>(`/threads/${threadId}/state`);
    expect(JSON.stringify(body.tasks)).toContain(message);
    expect(JSON.stringify(body.tasks)).not.toContain("pregelTaskId");
  });
});

describe("a value that contains itself", () => {
  const shown = { name: "self", own: "[Circular]", others: ["[Circular]"] };

  test("can be in the result of the run, in its events and in the state", async () => {
    const threadId = await api.aThread();
    expect(await api.aFinishedRun(threadId, odd("cycle"))).toEqual({ way: "cycle", value: shown });
    const events = await readStream(`${server.url}/threads/${threadId}/runs/stream`, {
      body: { ...odd("cycle"), stream_mode: ["updates"] },
    });
    expect(dataOf(events, "updates")).toEqual([{ end: { value: shown } }]);
    expect((await api.state(threadId)).values).toEqual({ way: "cycle", value: shown });
    expect((await api.runs(threadId)).map(({ status }) => status)).toEqual(["success", "success"]);
  });
});
