import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { saying } from "../../helpers/api.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase } from "../../helpers/database.ts";
import { spawnServer, type ServerProcess } from "../../helpers/server-process.ts";
import { ask, WITH_FORMS, WITH_TASKS } from "./clients.ts";

const CONFIG = fileURLToPath(new URL("../../engine/graphs/langgraph.json", import.meta.url));
const FIXTURES = fileURLToPath(new URL("../../fixtures/langgraph.json", import.meta.url));
const BOTH = { ...WITH_TASKS, ...WITH_FORMS };

interface TaskRecord {
  taskId: string;
  status: string;
  inputRequests?: Record<string, unknown>;
  result?: unknown;
}

const aDatabase = async (): Promise<string> => {
  const database = await freshDatabase();
  onTestFinished(() => database.drop());
  return database.connectionString;
};

const aServer = (database: string, config: string): ServerProcess => {
  const server = spawnServer(["--config", config, "--port", "0"], {
    DATABASE_URL: database,
    LEASE_SECONDS: "2",
  });
  onTestFinished(() => server.kill());
  return server;
};

const send = async (url: string, method: string, params: Record<string, unknown>): Promise<TaskRecord> =>
  (await ask(url, method, params, { capabilities: BOTH })).message.result as never;

const untilTaskIs = async (url: string, taskId: string, status: string): Promise<TaskRecord> =>
  await eventually(`the task is ${status}`, async () => {
    const task = await send(url, "tasks/get", { taskId });
    return task.status === status && task;
  });

test("a task goes on after its server was killed, and another server has its result", async () => {
  const database = await aDatabase();
  const first = aServer(database, CONFIG);
  const begun = await send(await first.address(), "tools/call", { name: "hesitant", arguments: {} });
  expect(begun.status).toBe("working");
  await first.kill();
  const second = aServer(database, CONFIG);
  const { result } = await untilTaskIs(await second.address(), begun.taskId, "completed");
  expect(result).toMatchObject({ structuredContent: { second: [expect.any(Number)] } });
});

test("a question waits after its server was killed, and another server takes the answer", async () => {
  const database = await aDatabase();
  const first = aServer(database, FIXTURES);
  const url = await first.address();
  const { taskId } = await send(url, "tools/call", { name: "approval", arguments: saying("a refund") });
  const asked = await untilTaskIs(url, taskId, "input_required");
  await first.kill();
  const second = await aServer(database, FIXTURES).address();
  expect(await send(second, "tasks/get", { taskId })).toMatchObject({ inputRequests: asked.inputRequests });
  const [key = ""] = Object.keys(asked.inputRequests ?? {});
  const inputResponses = { [key]: { action: "accept", content: { answer: "approve" } } };
  await send(second, "tasks/update", { taskId, inputResponses });
  expect((await untilTaskIs(second, taskId, "completed")).result).toMatchObject({
    structuredContent: { status: "sent" },
  });
});
