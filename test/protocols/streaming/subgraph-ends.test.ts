import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { isAtGate, openGate } from "../../fixtures/gates.ts";
import type { Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { onServer } from "../../helpers/servers.ts";
import { closingFrames, command, isInput, isRoot, started, type Frame, type FrameStream } from "./frames.ts";

/**
 * Clients read the state when a subgraph ends: Python's SDK takes any `completed` for the end of its run. A database
 * that stores checkpoints slowly shows what they would miss.
 */

const GRAPHS = fileURLToPath(new URL("graphs/langgraph.json", import.meta.url));
const STORING_SECONDS = 0.1;

let server: TestServer;
let api: Api;
onServer({ graphConfigFile: GRAPHS }, (opened) => ({ server, api } = opened));
const open = closingFrames(() => server);

beforeAll(async () => {
  await query(
    server,
    `create function linger() returns trigger language plpgsql as
     $$ begin perform pg_sleep(${STORING_SECONDS}); return null; end $$`,
  );
  for (const table of ["checkpoints", "checkpoint_writes"])
    await query(
      server,
      `create trigger linger before insert on threadloom.${table} for each statement execute function linger()`,
    );
});

const INPUT = { items: [] };
const named = (path: readonly string[]): string => path.map((segment) => segment.split(":")[0]).join("/");
const isEnd = ({ method, params: { data } }: Frame): boolean =>
  method === "lifecycle" && ["completed", "failed", "interrupted"].includes(String(data["event"]));

const itemsOf = async (threadId: string, namespace: readonly string[]): Promise<unknown> => {
  const { answer } = await command(server.url, threadId, "state.get", { namespace });
  return (answer.result?.["values"] as { items?: unknown } | undefined)?.items;
};

/** Reads the state of the calling graph at each end, up to the root's. */
const readAtEnds = async (threadId: string, stream: FrameStream): Promise<unknown[]> => {
  const read: unknown[] = [];
  for (;;) {
    const { params } = await stream.until(isEnd);
    const { namespace, data } = params;
    read.push([named(namespace), data["event"], await itemsOf(threadId, namespace.slice(0, -1))]);
    if (namespace.length === 0) return read;
  }
};

const watching = (threadId: string): Promise<FrameStream> =>
  open(threadId, { channels: ["lifecycle", "input"] });

/** The ways in which a run is stored, and its events logged. */
const RUNS = {
  "a run of event streaming": (threadId: string, run: object) => started(server.url, threadId, run),
  "a followed run": (threadId: string, run: object) => api.aRun(threadId, run),
  "a followed run with durability sync": (threadId: string, run: object) =>
    api.aRun(threadId, { ...run, durability: "sync" }),
};

describe.each(Object.entries(RUNS))("%s", (_name, start) => {
  const ends = async (graph: string): Promise<unknown[]> => {
    const threadId = await api.aThread();
    const stream = await watching(threadId);
    await start(threadId, { assistant_id: graph, input: INPUT });
    return await readAtEnds(threadId, stream);
  };

  test("ends a subgraph when its values can be read, also in the last step", async () => {
    expect(await ends("last-subgraph")).toEqual([
      ["child", "completed", ["first", "inner"]],
      ["", "completed", ["first", "inner"]],
    ]);
  });

  test("ends a graph within a subgraph when the subgraph's state has its values", async () => {
    expect(await ends("nested-subgraphs")).toEqual([
      // The run may have gone on.
      ["parent/child", "completed", expect.arrayContaining(["inner"])],
      ["parent", "completed", expect.arrayContaining(["inner", "rest"])],
      ["", "completed", ["inner", "rest", "after"]],
    ]);
  });

  test("ends a failed subgraph when the state before can be read", async () => {
    expect(await ends("failing-subgraph")).toEqual([
      ["child", "completed", ["inner"]],
      ["bad", "failed", ["inner"]],
      ["", "failed", ["inner"]],
    ]);
  });
});

test("a subgraph that ends before its sibling ends when its result can be read, not with the step", async () => {
  const threadId = newId();
  const stream = await watching(threadId);
  const label = `parallel:${threadId}`;
  await started(server.url, threadId, { assistant_id: "parallel-subgraphs", input: { ...INPUT, label } });
  const quick = await stream.until(isEnd);
  expect([named(quick.params.namespace), quick.params.data["event"]]).toEqual(["quick", "completed"]);
  const { tasks } = await api.state(threadId);
  expect(tasks).toContainEqual(
    expect.objectContaining({ name: "quick", result: { items: ["swift"], label } }),
  );
  await eventually("the sibling waits", () => isAtGate(label));
  openGate(label);
  expect(await readAtEnds(threadId, stream)).toEqual([
    ["slow", "completed", ["swift", "waits"]],
    ["", "completed", ["swift", "waits"]],
  ]);
});

test("tokens and values of other tasks do not wait for a subgraph's end", async () => {
  const threadId = newId();
  const stream = await open(threadId, { channels: ["lifecycle", "values", "updates"] });
  await started(server.url, threadId, { assistant_id: "nested-subgraphs", input: INPUT });
  await stream.until(isRoot("completed"));
  const seen = stream.seen.map(({ method, params }) =>
    [method, named(params.namespace), params.data["event"] ?? params.data["node"] ?? ""].join(" "),
  );
  // The next step begins before the checkpoint is stored.
  expect(seen.indexOf("updates parent rest")).toBeLessThan(seen.indexOf("lifecycle parent/child completed"));
  const numbers = stream.seen.map(({ seq }) => seq);
  expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
  expect(new Set(numbers).size).toBe(numbers.length);
});

test("a question in a subgraph, and the end after its answer, come when their state can be read", async () => {
  const threadId = newId();
  const stream = await watching(threadId);
  await started(server.url, threadId, { assistant_id: "asking-subgraphs", input: INPUT });
  const ended: unknown[] = [];
  for (;;) {
    const frame = await stream.until((each) => isInput(each) || isEnd(each));
    const { tasks } = await api.state(threadId);
    const [name] = named(frame.params.namespace).split("/");
    const task = tasks.find((each) => each.name === name) as {
      result?: { items?: unknown } | null;
      interrupts: unknown[];
    };
    if (isInput(frame)) {
      expect(task.interrupts).toHaveLength(1);
      break;
    }
    ended.push([name, frame.params.data["event"], task.result?.items ?? task.interrupts.length]);
  }
  expect(ended).toEqual(
    expect.arrayContaining([
      ["quick", "completed", ["swift"]],
      ["slow", "interrupted", 1],
    ]),
  );
  await stream.until(isRoot("interrupted"));
  await started(server.url, threadId, { assistant_id: "asking-subgraphs", input: "yes" });
  expect(await readAtEnds(threadId, stream)).toEqual([
    ["slow", "completed", ["swift", "yes"]],
    ["", "completed", ["swift", "yes"]],
  ]);
});

test("with durability exit, subgraphs end with the run, whose state is stored then", async () => {
  const threadId = await api.aThread();
  const stream = await watching(threadId);
  await api.aRun(threadId, { assistant_id: "nested-subgraphs", input: INPUT, durability: "exit" });
  const whole = ["inner", "rest", "after"];
  const read = [];
  for (;;) {
    const { params } = await stream.until(isEnd);
    read.push([named(params.namespace), params.data["event"], await itemsOf(threadId, [])]);
    if (params.namespace.length === 0) break;
  }
  expect(read).toEqual([
    ["parent/child", "completed", whole],
    ["parent", "completed", whole],
    ["", "completed", whole],
  ]);
});

test("a graph without a state of its own ends at once; the calling graph when its values can be read", async () => {
  const threadId = newId();
  const stream = await watching(threadId);
  await started(server.url, threadId, { assistant_id: "stateless-subgraph", input: INPUT });
  const ended = [];
  for (;;) {
    const { params } = await stream.until(isEnd);
    if (params.namespace.length < 2) ended.push([named(params.namespace), await itemsOf(threadId, [])]);
    if (params.namespace.length === 0) break;
  }
  expect(ended).toEqual([
    ["parent", ["inner", "rest"]],
    ["", ["inner", "rest"]],
  ]);
});

test("run streams send the mode lifecycle in the same order", async () => {
  const threadId = await api.aThread();
  const response = await fetch(`${server.url}/threads/${threadId}/runs/stream`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ assistant_id: "last-subgraph", input: INPUT, stream_mode: ["lifecycle"] }),
  });
  let text = "";
  let read: unknown;
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    if (text.includes('"completed"')) read ??= await itemsOf(threadId, []);
  }
  expect(read).toEqual(["first", "inner"]);
});
