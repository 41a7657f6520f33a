import { randomUUID } from "node:crypto";
import { processCpuMs } from "./cpu.ts";
import { median, run } from "./load.ts";
import { HELLO, scaled, type Bench, type Scenario } from "./scenario.ts";
import type { Replica } from "./server-process.ts";

const RUNS_AT_A_TIME = 8;
const WARM_UP_RUNS = 1_500;
const RUNS = 160;
/** Short alternating rounds, and a ratio of each: other work of the machine affects all contenders. */
const ROUNDS = 10;
const GRAPH = "two-step";
const MCP_REVISION = "2026-07-28";

/** For all contenders, so that none of them parses fewer. */
const HEADERS = {
  accept: "application/json, text/event-stream",
  "a2a-version": "1.0",
  "mcp-protocol-version": MCP_REVISION,
  "mcp-method": "tools/call",
  "mcp-name": GRAPH,
};

interface Contender {
  name: string;
  /** The API's request for the same work. */
  beside?: string;
  /** In the answer of a run that ended well. */
  proof: string;
  request(replica: Replica): Promise<{ body: string }>;
}

const API = "runs/wait without a thread";
const ON_THREAD = "runs/wait on a new thread";
const STREAM = "runs/stream on a new thread";

const streamed = async (replica: Replica, path: string, body: unknown): Promise<{ body: string }> => {
  let text = "";
  await replica.http.stream(path, body, (data) => (text += data.toString()));
  return { body: text };
};

const CONTENDERS: readonly Contender[] = [
  {
    name: API,
    proof: "messages",
    request: ({ http }) => http.post("/runs/wait", { assistant_id: GRAPH, input: HELLO }),
  },
  {
    name: "MCP tools/call",
    beside: API,
    proof: "structuredContent",
    request: ({ http }) =>
      http.post("/mcp", {
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: {
          name: GRAPH,
          arguments: HELLO,
          _meta: {
            "io.modelcontextprotocol/protocolVersion": MCP_REVISION,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { name: "bench", version: "1" },
          },
        },
      }),
  },
  {
    name: ON_THREAD,
    proof: "messages",
    request: ({ http }) =>
      http.post(`/threads/${randomUUID()}/runs/wait`, {
        assistant_id: GRAPH,
        input: HELLO,
        if_not_exists: "create",
      }),
  },
  {
    name: "A2A SendMessage",
    beside: ON_THREAD,
    proof: "TASK_STATE_COMPLETED",
    request: ({ http }) =>
      http.post(`/a2a/${GRAPH}`, {
        jsonrpc: "2.0",
        id: 1,
        method: "SendMessage",
        params: { message: { messageId: randomUUID(), role: "ROLE_USER", parts: [{ text: "hello" }] } },
      }),
  },
  {
    name: STREAM,
    proof: "values",
    request: (replica) =>
      streamed(replica, `/threads/${randomUUID()}/runs/stream`, {
        assistant_id: GRAPH,
        input: HELLO,
        if_not_exists: "create",
        stream_mode: ["messages-tuple", "values", "updates", "custom"],
        stream_resumable: true,
      }),
  },
  {
    name: "AG-UI run",
    beside: STREAM,
    proof: "RUN_FINISHED",
    request: (replica) =>
      streamed(replica, `/agui/${GRAPH}`, {
        threadId: randomUUID(),
        runId: randomUUID(),
        messages: [{ id: randomUUID(), role: "user", content: "hello" }],
        state: {},
        tools: [],
        context: [],
        forwardedProps: {},
        protocolVersion: "1.0",
      }),
  },
];

/** Milliseconds of the server's process per run. */
const measure = async (replica: Replica, { name, proof, request }: Contender, count: number) => {
  const before = await processCpuMs(replica.pid);
  await run(RUNS_AT_A_TIME, count, async () => {
    const { body } = await request(replica);
    if (!body.includes(proof)) throw new Error(`A run of '${name}' failed: ${body.slice(0, 1_000)}`);
  });
  return ((await processCpuMs(replica.pid)) - before) / count;
};

export const protocols: Scenario = {
  name: "protocols",
  about: "what a run costs through MCP, A2A and AG-UI, beside the API's request for the same work",
  onRequest: true,
  async run(bench: Bench) {
    const replica = await bench.server.startReplica({ headers: HEADERS });
    try {
      for (const contender of CONTENDERS) await measure(replica, contender, scaled(bench, WARM_UP_RUNS));
      for (let repeat = 0; repeat < bench.repeats; repeat += 1) {
        const rounds = new Map<string, number[]>(CONTENDERS.map(({ name }) => [name, []]));
        for (let round = 0; round < ROUNDS; round += 1)
          for (const contender of CONTENDERS)
            rounds.get(contender.name)!.push(await measure(replica, contender, scaled(bench, RUNS)));
        const cpu = (name: string): number => median(rounds.get(name) ?? []);
        const ratio = (name: string, beside: string): number => {
          const others = rounds.get(beside) ?? [];
          return median((rounds.get(name) ?? []).map((ms, round) => ms / (others[round] ?? NaN)));
        };
        const add = (label: string, unit: string, value: number, wanted?: string) =>
          bench.figures.add(
            "protocols",
            { label, unit, better: "less", ...(wanted && { wanted }) },
            "threadloom",
            value,
          );
        for (const { name, beside } of CONTENDERS) {
          add(`CPU of the process: ${name}`, "ms/run", cpu(name));
          if (beside !== undefined) add(`CPU beside ${beside}: ${name}`, "", ratio(name, beside), "<= 1.15");
          bench.progress(`protocols: ${name}: ${cpu(name).toFixed(2)} ms`);
        }
      }
    } finally {
      await replica.stop();
    }
  },
};
