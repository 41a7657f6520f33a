import { TaskState, type ListTasksRequest } from "@a2a-js/sdk";
import pg from "pg";
import { beforeAll, describe, expect, test } from "vitest";
import { createTaskRepository, type TaskSearch } from "../../../src/protocols/a2a/repository.ts";
import { ANONYMOUS } from "../../../src/access/caller.ts";
import { assistantIdOf } from "../../../src/platform/domain/assistant-ids.ts";
import { newId } from "../../../src/platform/lib/ids.ts";
import { authorize } from "../../helpers/access.ts";
import { isAtGate, openGate } from "../../fixtures/gates.ts";
import { saying as input, type Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { openTestDatabase } from "../../helpers/test-database.ts";
import { onServer } from "../../helpers/servers.ts";
import { clientOf, data, errorOf, saying, sent, text } from "./clients.ts";

let server: TestServer;
let api: Api;
onServer({}, (opened) => ({ server, api } = opened));

const asked = (fields: Partial<ListTasksRequest> = {}): ListTasksRequest => ({
  ...{ tenant: "", contextId: "", status: TaskState.TASK_STATE_UNSPECIFIED, pageToken: "" },
  ...{ statusTimestampAfter: undefined, ...fields },
});

describe("ListTasks", () => {
  const contextId = newId();
  const ids: string[] = [];
  beforeAll(async () => {
    const approval = await clientOf(server, "approval");
    for (const answer of [undefined, "approve", undefined]) {
      const task = await sent(approval, saying([text("a refund")], { contextId }));
      if (answer !== undefined) await sent(approval, saying([text(answer)], { taskId: task.id }));
      ids.unshift(task.id);
    }
    // A run of the API is no task.
    await api.aFinishedRun(contextId, { assistant_id: "two-step", input: input("hi") });
  });
  const list = async (fields?: Partial<ListTasksRequest>) =>
    await (await clientOf(server, "approval")).listTasks(asked(fields));

  test("lists each task of a context once, the newest status first", async () => {
    const { tasks, nextPageToken, totalSize, pageSize } = await list({ contextId });
    expect(tasks.map(({ id }) => id)).toEqual(ids);
    expect(tasks.every(({ history, artifacts }) => history.length + artifacts.length === 0)).toBe(true);
    expect({ nextPageToken, totalSize, pageSize }).toEqual({ nextPageToken: "", totalSize: 3, pageSize: 3 });
  });

  test("pages neither skip nor repeat a task", async () => {
    const seen: string[] = [];
    let pageToken = "";
    do {
      const page = await list({ contextId, pageSize: 1, pageToken });
      expect(page.tasks).toHaveLength(1);
      expect(page.totalSize).toBe(3);
      seen.push(...page.tasks.map(({ id }) => id));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(seen).toEqual(ids);
    expect(await errorOf(list({ pageToken: "forged" }))).toBe("RequestMalformedError");
  });

  test("finds tasks by their state, and shows histories and artifacts if they are asked for", async () => {
    // Only the newest run of a thread waits: what came before it was given up.
    const completed = await list({
      ...{ contextId, status: TaskState.TASK_STATE_COMPLETED, includeArtifacts: true, historyLength: 5 },
    });
    const answered = completed.tasks.find(({ id }) => id === ids[1]);
    expect(answered?.artifacts[0]?.parts[0]?.content?.value).toContain("Sent: Dear customer");
    expect(answered?.history.length).toBeGreaterThan(1);
    expect((await list({ contextId, status: TaskState.TASK_STATE_FAILED })).tasks).toEqual([]);
    expect((await list({ contextId, status: TaskState.TASK_STATE_REJECTED })).tasks).toEqual([]);
    const [newest] = (await list({ contextId })).tasks;
    expect(
      (await list({ contextId, statusTimestampAfter: newest?.status?.timestamp })).tasks.map(({ id }) => id),
    ).toEqual([ids[0]]);
  });

  test("finds tasks that work or wait for input", async () => {
    const label = "listed";
    const gate = await clientOf(server, "gate");
    const { id, contextId: its } = await sent(gate, saying([data({ label })], { returnImmediately: true }));
    await eventually("the task works", () => isAtGate(label));
    const working = await gate.listTasks(asked({ contextId: its, status: TaskState.TASK_STATE_WORKING }));
    expect(working.tasks).toMatchObject([{ id, status: { state: TaskState.TASK_STATE_WORKING } }]);
    openGate(label);
    const approval = await clientOf(server, "approval");
    const waiting = await sent(approval, saying([text("a refund")]));
    const found = await list({ contextId: waiting.contextId, status: TaskState.TASK_STATE_INPUT_REQUIRED });
    expect(found.tasks.map((task) => task.id)).toEqual([waiting.id]);
    expect(
      (await list({ contextId: waiting.contextId, status: TaskState.TASK_STATE_COMPLETED })).tasks,
    ).toEqual([]);
  });

  test("refuses pages of a wrong size", async () => {
    expect(await errorOf(list({ pageSize: 101 }))).toBe("RequestMalformedError");
    expect(await errorOf(list({ pageSize: 0 }))).toBe("RequestMalformedError");
  });
});

test("a page with large artifacts ends early, and the next one goes on behind it", async () => {
  const contextId = newId();
  const counter = await clientOf(server, "gate");
  for (let count = 0; count < 3; count += 1) {
    const label = `${count}${"x".repeat(2_500_000)}`;
    const sending = sent(counter, saying([data({ label })], { contextId }));
    await eventually("the run is at its gate", () => isAtGate(label));
    openGate(label);
    await sending;
  }
  const first = await counter.listTasks(asked({ contextId, includeArtifacts: true }));
  expect(first.tasks.length).toBeLessThan(3);
  const next = await counter.listTasks(
    asked({ contextId, includeArtifacts: true, pageToken: first.nextPageToken }),
  );
  expect(new Set([...first.tasks, ...next.tasks].map(({ id }) => id)).size).toBe(
    first.tasks.length + next.tasks.length,
  );
  expect((await counter.listTasks(asked({ contextId }))).tasks).toHaveLength(3);
});

const SEARCH = {
  assistantId: assistantIdOf("agent"),
  ...{ threadId: undefined, state: undefined, since: undefined, limit: 50, pageToken: undefined },
};

/** A page, and the plans of the statements that read it. */
const planned = async (search: TaskSearch) => {
  const database = openTestDatabase(server.connectionString);
  const texts: { text: string; values: unknown[] }[] = [];
  const spied = {
    ...database,
    boundedRead: async (sql: string, values: unknown[] = []) => {
      texts.push({ text: sql, values });
      return await database.boundedRead(sql, values);
    },
  } as typeof database;
  const repository = createTaskRepository(authorize, spied);
  const page = await repository.list(ANONYMOUS, search, new AbortController().signal);
  const client = new pg.Client({ connectionString: server.connectionString });
  await client.connect();
  const plans: string[] = [];
  for (const { text: sql, values } of texts) {
    const { rows } = await client.query<{ "QUERY PLAN": string }>(
      `explain (analyze, buffers) ${sql}`,
      values,
    );
    plans.push(rows.map((row) => row["QUERY PLAN"]).join("\n"));
  }
  await client.end();
  await database.close();
  return { page, plans };
};
const buffersOf = (plan: string | undefined): number => Number(/shared hit=(\d+)/.exec(plan ?? "")?.[1]);

describe("many tasks", () => {
  beforeAll(async () => {
    await query(
      server,
      `insert into threadloom.threads (thread_id) select gen_random_uuid() from generate_series(1, 20000)`,
    );
    await query(
      server,
      `insert into threadloom.runs (run_id, thread_id, assistant_id, graph_id, status, metadata, kwargs, multitask_strategy)
     select gen_random_uuid(), thread_id, $1, 'agent', 'success', '{"origin": "a2a"}', '{}', 'enqueue'
     from threadloom.threads`,
      [SEARCH.assistantId],
    );
    await query(server, "analyze threadloom.runs, threadloom.threads");
  });

  test("a page of many tasks is read in the order of its index, without the tasks behind it", async () => {
    const { page, plans } = await planned(SEARCH);
    expect(page.tasks).toHaveLength(50);
    expect(page.isLast).toBe(false);
    expect(page.total).toBe(1_000);
    expect(plans).toHaveLength(2);
    for (const plan of plans) {
      expect(plan).toContain("runs_of_a2a");
      expect(plan).not.toContain("Seq Scan");
    }
    expect(buffersOf(plans[1])).toBeLessThan(2_000);
    // Only the first page is counted.
    const next = await planned({ ...SEARCH, pageToken: page.tasks.at(-1)?.pageToken });
    expect(next.page.tasks).toHaveLength(50);
    expect(next.page.total).toBe(1_000);
    expect(next.plans).toHaveLength(1);
  });

  test("a task in a long context is read without all the tasks after it", async () => {
    const threadId = await api.aThread();
    const assistantId = assistantIdOf("two-step");
    // The database's statistics know only the short contexts.
    await query(
      server,
      `insert into threadloom.runs
       (run_id, thread_id, assistant_id, graph_id, status, metadata, kwargs, multitask_strategy, created_at, updated_at)
     select gen_random_uuid(), $1, $2, 'two-step', 'success', '{"origin": "a2a"}', '{}', 'enqueue', at, at
     from generate_series(now() - interval '3000 seconds', now() - interval '1 second', interval '1 second') at`,
      [threadId, assistantId],
    );
    for (const context of [undefined, threadId]) {
      const { page, plans } = await planned({ ...SEARCH, assistantId, threadId: context });
      expect(page.total).toBe(1_000);
      for (const plan of plans) expect(buffersOf(plan)).toBeLessThan(40_000);
    }
  });
});
