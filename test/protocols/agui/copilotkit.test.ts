import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import { HttpAgent } from "ag-ui-client-0";
import { beforeAll, expect, test } from "vitest";
import { isAtGate } from "../../fixtures/gates.ts";
import { eventually } from "../../helpers/conditions.ts";
import { onServer } from "../../helpers/servers.ts";
import { AGUI_GRAPHS } from "./clients.ts";

/* The runner that docs/agui.md shows, on a stand-in for CopilotKit's, with a server that has keys. */

const KEY = "a-key-of-the-tests";
const headers = { "x-api-key": KEY };

interface Observer {
  error?: (error: unknown) => void;
  complete?: () => void;
}
type Watched = { subscribe(observer: Observer): unknown };
interface Runner {
  run(request: object): unknown;
  connect(request: object): Watched;
  stop(request: object): Promise<boolean>;
}

class StandIn {
  run(): void {}
  async stop(): Promise<boolean> {
    return true;
  }
}

let url: string;
let newRunner: () => Runner;
onServer({ graphConfigFile: AGUI_GRAPHS, apiKeys: [KEY] }, (opened) => {
  ({ url } = opened.server);
});
beforeAll(async () => {
  const page = await readFile(new URL("../../../docs/agui.md", import.meta.url), "utf8");
  const [code] = /class ThreadRunner [^]*?\n {3}\}\n/.exec(page) ?? [];
  const evaluate = new Function("InMemoryAgentRunner", "HttpAgent", "server", `return ${code}`);
  const ThreadRunner = evaluate(StandIn, HttpAgent, url) as new () => Runner;
  newRunner = () => new ThreadRunner();
});

const statusesOf = async (threadId: string): Promise<string[]> => {
  const answer = await fetch(`${url}/threads/${threadId}/runs`, { headers });
  const runs = (await answer.json()) as { status: string }[];
  return runs.map(({ status }) => status);
};

/** Starts a run that waits at its gate. The returned function waits for the end of its stream. */
const aRun = async (agent: HttpAgent, runner: Runner): Promise<() => Promise<void>> => {
  const label = randomUUID();
  agent.addMessage({ id: randomUUID(), role: "user", content: label });
  runner.run({ threadId: agent.threadId, agent });
  const ended = agent.runAgent().then(
    () => undefined,
    () => undefined,
  );
  await eventually("the run waits at its gate", () => isAtGate(label));
  return () => ended;
};
const anAgent = (): HttpAgent =>
  new HttpAgent({ url: `${url}/agui/chat-gate`, headers, threadId: randomUUID() });

test("Stop cancels the run of the thread's agent with the key of the page", async () => {
  const runner = newRunner();
  const agent = anAgent();
  const ended = await aRun(agent, runner);
  expect(await runner.stop({ threadId: agent.threadId })).toBe(true);
  await eventually("the run is cancelled", async () =>
    (await statusesOf(agent.threadId)).every((status) => status === "interrupted"),
  );
  await ended();
});

test("Stop cancels the run that a page joined after a reload", async () => {
  const agent = anAgent();
  const { threadId } = agent;
  const ended = await aRun(agent, newRunner());
  const runner = newRunner();
  const left = new Promise<void>((resolve) => {
    const joined = runner.connect({ threadId, agentId: "chat-gate", headers });
    joined.subscribe({ error: () => resolve(), complete: resolve });
  });
  await runner.stop({ threadId });
  await eventually("the run is cancelled", async () =>
    (await statusesOf(threadId)).every((status) => status === "interrupted"),
  );
  await Promise.all([ended(), left]);
});

test("Stop fails if the server refuses the cancellation", async () => {
  const runner = newRunner();
  const agent = { url: `${url}/agui/chat-gate`, headers: {} };
  const threadId = randomUUID();
  runner.run({ threadId, agent });
  await expect(runner.stop({ threadId })).rejects.toThrow("The run was not cancelled");
});
