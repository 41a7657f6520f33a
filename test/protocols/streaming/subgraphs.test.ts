import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import type { Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { closingFrames, command, EVERYTHING, isInput, isRoot, started, type FrameStream } from "./frames.ts";
import { onServer } from "../../helpers/servers.ts";

/** The events of subgraphs over event streaming, and their receivers. */

const GRAPHS = fileURLToPath(new URL("graphs/langgraph.json", import.meta.url));

let server: TestServer;
let api: Api;
onServer({ graphConfigFile: GRAPHS }, (opened) => ({ server, api } = opened));

const open = closingFrames(() => server);
const NESTED = { assistant_id: "nested", input: { text: "tea" } };
const named = (path: readonly string[]): string[] => path.map((segment) => segment.split(":")[0] ?? "");

test("a question has the path of its graph, for a subscriber to that graph, and for a later reader", async () => {
  const threadId = newId();
  const bodies = [
    { channels: EVERYTHING },
    { channels: ["input"], namespaces: [["outer"]] },
    { channels: ["input"], namespaces: [["outer", "inner"]], depth: 0 },
  ];
  const live = [];
  for (const body of bodies) live.push(await open(threadId, body));
  const { runId } = await started(server.url, threadId, NESTED);
  const requests = [];
  for (const stream of live) requests.push(await stream.until(isInput));
  for (const body of bodies) requests.push(await (await open(threadId, body)).until(isInput));
  const [first] = requests;
  expect(named(first?.params.namespace ?? [])).toEqual(["outer", "inner"]);
  expect(first?.params.namespace[0]).toMatch(/^outer:[0-9a-f-]{36}$/);
  for (const request of requests) expect(request).toEqual(first);
  const lifecycle = live[0]?.seen.filter(({ method }) => method === "lifecycle") ?? [];
  expect(lifecycle.map(({ params }) => params.namespace)).toContainEqual(first?.params.namespace);
  // A reader of the first wire gets the interrupt in LangGraph's form.
  const [interrupt] = Object.values((await api.thread(threadId)).interrupts).flat();
  expect(interrupt).toEqual({ id: first?.params.data["interrupt_id"], value: "Sure?" });
  expect(first?.event_id).toBe(`synth:${runId}:input:${String(interrupt?.id)}`);
  const answer = { interrupt_id: interrupt?.id, namespace: first?.params.namespace, response: "yes" };
  expect((await command(server.url, threadId, "input.respond", answer)).answer.type).toBe("success");
  await live[0]?.until(isRoot("completed"));
  expect((await api.state(threadId)).values).toEqual({ text: "yes" });
});

test("Python's connection for lifecycle and input receives only the root's events, and questions of all graphs", async () => {
  const threadId = newId();
  const watching = { channels: ["lifecycle", "input"] };
  const python = { "user-agent": "langgraph-sdk-py/0.4.3" };
  const watcher = await open(threadId, watching, python);
  const ofSubgraphs = await open(threadId, { ...watching, namespaces: [["outer"]] }, python);
  const javascript = await open(threadId, watching, { "user-agent": "langgraph-sdk-js/1.15.0" });
  await started(server.url, threadId, NESTED);
  for (const stream of [watcher, javascript]) await stream.until(isRoot("interrupted"));
  await ofSubgraphs.until(isInput);
  const paths = ({ seen }: FrameStream): string[] =>
    seen.map(({ method, params }) => `${method} ${named(params.namespace).join("/")}`);
  expect(paths(watcher)).toEqual(["lifecycle ", "input.requested outer/inner", "lifecycle "]);
  for (const stream of [javascript, ofSubgraphs]) expect(paths(stream)).toContain("lifecycle outer/inner");
});

test("the tree of a thread contains the subgraphs, with the status of each", async () => {
  const threadId = newId();
  const { runId } = await started(server.url, threadId, NESTED);
  await api.untilQuiet(threadId);
  const treeOf = async (params: object): Promise<unknown> =>
    (await command(server.url, threadId, "agent.getTree", params)).answer.result?.["tree"];
  const paths = (node: unknown): unknown => {
    const { namespace, status, children } = node as {
      namespace: string[];
      status: string;
      children: unknown[];
    };
    return [named(namespace).join("/"), status, children.map(paths)];
  };
  const asking = ["", "interrupted", [["outer", "interrupted", [["outer/inner", "interrupted", []]]]]];
  expect(paths(await treeOf({}))).toEqual(asking);
  await started(server.url, threadId, { assistant_id: "nested", input: "yes" });
  await api.untilQuiet(threadId);
  const done = ["", "completed", [["outer", "completed", [["outer/inner", "completed", []]]]]];
  expect(paths(await treeOf({}))).toEqual(done);
  expect(await treeOf({ run_id: runId })).toMatchObject({
    children: [{ graph_name: "outer", status: "interrupted", children: [{ graph_name: "inner" }] }],
  });
});
