import { createServer, type AddressInfo, type Server } from "node:net";
import { fileURLToPath } from "node:url";
import { Client } from "@langchain/langgraph-sdk";
import { expect, onTestFinished, test } from "vitest";
import { leastOf, millisecondsOf } from "../../helpers/conditions.ts";
import { freePort } from "../../helpers/free-port.ts";
import { aProject } from "../../helpers/project.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import type { ServerProcess } from "../../helpers/server-process.ts";
import { startReceiver, type TracedRun } from "./receiver.ts";

const GRAPH = fileURLToPath(new URL("./graph.ts", import.meta.url));
const INPUT = { messages: [{ role: "user", content: "1 + 2?" }] };

const variablesFor = (endpoint: string): Record<string, string> => ({
  LANGSMITH_TRACING: "true",
  LANGSMITH_API_KEY: "lsv2_test",
  LANGSMITH_ENDPOINT: endpoint,
  LANGSMITH_PROJECT: "calculations",
});

/** A server whose project names the variables of LangSmith. */
const startServer = async (endpoint: string, { workers = 0, more = {} } = {}) => {
  const env = { ...variablesFor(endpoint), ...more };
  const project = await aProject({
    "langgraph.json": { graphs: { agent: `${GRAPH}:researcher` }, env },
  });
  const server = await project.start(["--workers", String(workers)]);
  return { server, client: new Client({ apiUrl: await server.address() }) };
};

const stop = async (server: ServerProcess): Promise<void> => {
  server.child.kill("SIGTERM");
  expect(await server.exit()).toBe(0);
};

const ending = async (client: Client, more: Record<string, unknown> = {}) => {
  const { thread_id } = await client.threads.create();
  const run = await client.runs.create(thread_id, "agent", { input: INPUT, ...more });
  await client.runs.join(thread_id, run.run_id);
  expect((await client.runs.get(thread_id, run.run_id)).status).toBe("success");
  return run;
};

const byName = (runs: TracedRun[], name: string): TracedRun => {
  const found = runs.filter((run) => run.name === name);
  expect(found.map((run) => run.name)).toEqual([name]);
  return found[0]!;
};

test.each([
  ["the server", 0, true],
  ["a graph process", 1, true],
  ["the server, to an endpoint without multipart", 0, false],
])("a server that stops has sent the whole trace of a run in %s", async (_where, workers, multipart) => {
  const receiver = await startReceiver({ multipart });
  onTestFinished(() => receiver.close());
  const { server, client } = await startServer(receiver.url, { workers });
  const run = await ending(client);
  const { flags } = (await (await fetch(`${await server.address()}/info`)).json()) as { flags: unknown };
  expect(flags).toMatchObject({ langsmith: true, langsmith_tracing_replicas: true });
  await stop(server);

  expect([...receiver.keys]).toEqual(["lsv2_test"]);
  const runs = receiver.runs();
  const root = byName(runs, "researcher");
  const model = runs.find(({ run_type }) => run_type === "llm")!;
  const chain = (from: TracedRun): string[] => {
    const parent = runs.find(({ id }) => id === from.parent_run_id);
    return parent === undefined ? [from.name] : [...chain(parent), from.name];
  };
  expect(chain(model)).toEqual(["researcher", "calculate", "calculator", "think", "ReportingModel"]);
  expect(chain(byName(runs, "add"))).toEqual(["researcher", "calculate", "calculator", "act", "add"]);
  expect(root).toMatchObject({
    id: run.run_id,
    run_type: "chain",
    session_name: "calculations",
    extra: {
      metadata: {
        thread_id: run.thread_id,
        run_id: run.run_id,
        assistant_id: run.assistant_id,
        graph_id: "agent",
        run_attempt: 1,
      },
    },
  });
  expect(root.parent_run_id ?? null).toBeNull();
  expect(JSON.stringify(root.inputs)).toContain("1 + 2?");
  expect(JSON.stringify(root.outputs)).toContain("one two three");
  expect(model.extra?.metadata).toMatchObject({
    ls_model_name: "calling",
    thread_id: run.thread_id,
    usage_metadata: { input_tokens: 11, output_tokens: 7 },
  });
  expect(byName(runs, "add").run_type).toBe("tool");
  expect(new Set(runs.map(({ trace_id }) => trace_id))).toEqual(new Set([run.run_id]));
  expect(runs.filter(({ end_time }) => end_time == null)).toEqual([]);
});

test("a run may name another project and an example, and its project still gets the trace", async () => {
  const receiver = await startReceiver({ multipart: true });
  onTestFinished(() => receiver.close());
  const { server, client } = await startServer(receiver.url);
  const exampleId = newId();
  await ending(client, { _langsmithTracer: { projectName: "experiment", exampleId } });
  const inOwnProject = { _langsmithTracer: { exampleId } };
  const other = await ending(client, inOwnProject);
  await stop(server);

  const roots = receiver.runs().filter(({ name }) => name === "researcher");
  const summary = roots.map(({ session_name, reference_example_id }) => ({
    session_name,
    reference_example_id,
  }));
  expect(summary).toHaveLength(3);
  expect(summary).toEqual(
    expect.arrayContaining([
      { session_name: "experiment", reference_example_id: exampleId },
      { session_name: "calculations", reference_example_id: undefined },
      { session_name: "calculations", reference_example_id: exampleId },
    ]),
  );
  expect(roots.find(({ id }) => id === other.run_id)).toMatchObject({ reference_example_id: exampleId });
  const children = receiver.runs().filter(({ session_name }) => session_name === "experiment");
  expect(children.filter(({ run_type }) => run_type === "tool")).toHaveLength(1);
});

/** Accepts connections and never answers. */
const silentServer = async (): Promise<string> => {
  const sockets = new Set<{ destroy(): void }>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined).resume();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};
const refusing = async (): Promise<string> => `http://127.0.0.1:${await freePort()}`;

test.each([
  ["refuses connections", refusing, 0],
  ["refuses connections", refusing, 1],
  ["never answers", silentServer, 0],
])("an endpoint that %s does not delay a run (%#)", async (_how, endpointOf, workers) => {
  const { server, client } = await startServer(await endpointOf(), { workers });
  for (let count = 0; count < 20; count += 1) await ending(client);
  expect(await leastOf(500, () => millisecondsOf(() => ending(client)))).toBeLessThan(500);
  await stop(server);
  expect(server.output()).not.toContain("lsv2_test");
});

test("a server whose variables LangSmith's client refuses does not start", async () => {
  const env = { ...variablesFor("http://127.0.0.1:9"), LANGSMITH_TRACING_SAMPLING_RATE: "7" };
  const project = await aProject({ "langgraph.json": { graphs: { agent: `${GRAPH}:researcher` }, env } });
  expect(await project.refusal()).toContain(
    "LangSmith's client can't be made: Error: LANGSMITH_TRACING_SAMPLING_RATE must be between 0 and 1 if set. Got: 7.",
  );
});
