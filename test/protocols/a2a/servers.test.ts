import { TaskState, type Task } from "@a2a-js/sdk";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { FIXTURE_GRAPHS } from "../../helpers/parts.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { query } from "../../helpers/query.ts";
import { spawnServer, type ServerProcess } from "../../helpers/server-process.ts";
import { startReceiver } from "../webhooks/receiver.ts";
import { artifactOf, assembled, clientOf, data, eventsOf, errorOf, saying, sent, text } from "./clients.ts";

/** Several servers on one database, one of which is killed. */

let database: FreshDatabase;
const servers: ServerProcess[] = [];
const start = async (
  environment: Record<string, string> = {},
  entry?: string,
): Promise<{ process: ServerProcess; url: string }> => {
  const process = spawnServer(
    ["--config", FIXTURE_GRAPHS, "--port", "0"],
    {
      DATABASE_URL: database.connectionString,
      LEASE_SECONDS: "3",
      ...environment,
    },
    entry,
  );
  servers.push(process);
  return { process, url: await process.address() };
};
beforeAll(async () => {
  database = await freshDatabase();
});
// A server of another test would send the notifications, by its own rules.
afterEach(async () => {
  for (const server of servers.splice(0)) await server.kill();
});
afterAll(() => database.drop());

const COUNT = 50;
const DONE = new Set<TaskState | undefined>([TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_CANCELED]);

test("of 50 tasks at once, with cancels and a killed server in between, none is lost and none is doubled", async () => {
  const [one, two] = await Promise.all([start(), start()]);
  const dying = await clientOf(one, "sleep");
  const other = await clientOf(two, "sleep");
  const task = async (index: number): Promise<Task> =>
    await sent(
      index % 2 === 0 ? dying : other,
      saying([text(`task ${index}`), data({ milliseconds: 400 })], { returnImmediately: true }),
    );
  const followed = await sent(
    dying,
    saying([text("go"), data({ milliseconds: 4_000 })], { returnImmediately: true }),
  );
  const stream = other.resubscribeTask({ tenant: "", id: followed.id });
  expect((await stream.next()).value?.payload).toMatchObject({ $case: "task", value: { id: followed.id } });
  const tasks = await Promise.all(Array.from({ length: COUNT }, (_, index) => task(index)));
  expect(new Set(tasks.map(({ id }) => id)).size).toBe(COUNT);
  const cancelled = tasks.filter((_, index) => index % 5 === 0);
  const cancelling = cancelled.map(({ id }) =>
    errorOf(other.cancelTask({ tenant: "", id, metadata: undefined })),
  );
  const rest = eventsOf(stream);
  const [running] = await query<{ status: string }>(
    database,
    "select status from threadloom.runs where run_id = $1",
    [followed.id.split(":")[1]],
  );
  expect(running?.status).toBe("running");
  await one.process.kill();
  const errors = await Promise.all(cancelling);
  expect(errors.filter((error) => error !== undefined && error !== "TaskNotCancelableError")).toEqual([]);
  const ended = await eventually("all tasks have ended", async () => {
    const found = await Promise.all(
      tasks.map(({ id }) => other.getTask({ tenant: "", id, historyLength: undefined })),
    );
    return found.every(({ status }) => DONE.has(status?.state)) ? found : undefined;
  });
  for (const [index, { status, artifacts, history, ...found }] of ended.entries()) {
    expect(found).toMatchObject({ id: tasks[index]?.id, contextId: tasks[index]?.contextId });
    const wasCancelled = index % 5 === 0 && errors[index / 5] === undefined;
    expect(status?.state).toBe(wasCancelled ? TaskState.TASK_STATE_CANCELED : TaskState.TASK_STATE_COMPLETED);
    if (wasCancelled) continue;
    expect(artifactOf({ artifacts } as Task)).toBe("Slept for 400 ms.");
    expect(history).toHaveLength(2);
  }
  const events = await rest;
  expect(events.at(-1)).toMatchObject({ value: { status: { state: TaskState.TASK_STATE_COMPLETED } } });
  expect(assembled(events)).toBe("Slept for 4000 ms.");
  const list = {
    ...{ tenant: "", contextId: "", status: TaskState.TASK_STATE_UNSPECIFIED, pageToken: "", pageSize: 100 },
    statusTimestampAfter: undefined,
  };
  expect((await other.listTasks(list)).tasks).toHaveLength(COUNT + 1);
  const [runs] = await query<{ count: string }>(database, "select count(*) from threadloom.runs");
  expect(Number(runs?.count)).toBe(COUNT + 1);
});

test("a task that waits for input is answered at another server than the one that asked", async () => {
  const [one, two] = await Promise.all([start(), start()]);
  const asked = await sent(await clientOf(one, "approval"), saying([text("a refund")]));
  await one.process.kill();
  const answered = await sent(
    await clientOf(two, "approval"),
    saying([text("approve")], { taskId: asked.id }),
  );
  expect(answered.status?.state).toBe(TaskState.TASK_STATE_COMPLETED);
  expect(artifactOf(answered)).toContain("Sent:");
});

test.each(["after-finish", "before-sending"])(
  "a push notification is sent once although its server dies by kill -9 at %s",
  async (point) => {
    const receiver = await startReceiver();
    const settings = { LANGGRAPH_WEBHOOKS: JSON.stringify({ url: { disable_loopback: false } }) };
    const doomed = await start({ ...settings, FAULT_POINT: point }, "test/fixtures/faulty-server.ts");
    const request = saying([text("x"), data({ milliseconds: 500 })], { returnImmediately: true });
    request.configuration!.taskPushNotificationConfig = {
      ...{ tenant: "", id: "1", taskId: "", url: receiver.url, token: "t", authentication: undefined },
    };
    const task = await sent(await clientOf(doomed, "sleep"), request);
    expect(await doomed.process.exit()).toBe("SIGKILL");
    expect(receiver.received).toEqual([]);
    const stored = await query<{ state: string }>(
      database,
      "select p.state from threadloom.deliveries p join threadloom.runs using (thread_id) where thread_id = $1 and status = 'success'",
      [task.contextId],
    );
    expect(stored).toEqual([{ state: "pending" }]);
    // The lease of a delivery that a dead server holds is over in a minute.
    await query(database, "update threadloom.deliveries set due_at = now() where state = 'pending'");
    await start(settings);
    await eventually("it is delivered", async () => {
      const found = await query<{ state: string }>(
        database,
        "select state from threadloom.deliveries where thread_id = $1",
        [task.contextId],
      );
      return found[0]?.state === "delivered";
    });
    expect(receiver.received).toHaveLength(1);
    expect(receiver.received[0]?.headers).toMatchObject({ "x-a2a-notification-token": "t" });
    expect(receiver.payloads()).toMatchObject([
      { task: { id: task.id, status: { state: "TASK_STATE_COMPLETED" } } },
    ]);
    await receiver.close();
  },
);
