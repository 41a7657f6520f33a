import { stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { apiOf, saying, textsOf, type StateRecord } from "../helpers/api.ts";
import { startTestServer } from "../helpers/app.ts";
import { commandOf } from "../helpers/command-process.ts";
import { eventually } from "../helpers/conditions.ts";
import { commandHere } from "../helpers/command-here.ts";
import { freshDatabase } from "../helpers/database.ts";
import { query } from "../helpers/query.ts";
import { temporaryFolder } from "../helpers/temporary-folder.ts";

const aFolder = async () => {
  const folder = await temporaryFolder();
  onTestFinished(() => folder.remove());
  return folder;
};
const anEmptyDatabase = async (): Promise<string> => {
  const database = await freshDatabase();
  onTestFinished(() => database.drop());
  return database.connectionString;
};

test("a backup made while runs are running is restored elsewhere, with unchanged threads, and the runs continue", async () => {
  const folder = await aFolder();
  const file = join(folder.path, "all.gz");
  const run = (argv: string[], url: string) =>
    commandOf(argv, { cwd: folder.path, environment: { DATABASE_URL: url } });
  const first = await startTestServer();
  let url: string;
  let thread: string;
  let running: { thread_id: string; run_id: string };
  try {
    const api = apiOf(first);
    thread = (await api.post<{ thread_id: string }>("/threads", { metadata: { note: "a\\.\nb\t\u2028" } }))
      .body.thread_id;
    await api.post(`/threads/${thread}/runs/wait`, {
      assistant_id: "agent",
      input: saying("Hello\n\\.\nthere"),
    });
    const { thread_id } = (await api.post<{ thread_id: string }>("/threads", {})).body;
    const body = { assistant_id: "sleep", input: { milliseconds: 60_000 } };
    running = (await api.post<typeof running>(`/threads/${thread_id}/runs`, body)).body;
    await eventually("it runs", async () => {
      const { status } = (await api.get<{ status: string }>(`/threads/${thread_id}/runs/${running.run_id}`))
        .body;
      return status === "running";
    });
    const made = await run(["backup", "--output", file, "--json"], first.connectionString);
    expect(made.code).toBe(0);
    expect(made.stderr).toMatch(/^threads: 2 rows$/m);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await run(["backup", "--output", file], first.connectionString)).code).toBe(1);
    const here = await run(["restore", file, "--force"], first.connectionString);
    expect([here.code, here.stderr]).toEqual([1, expect.stringContaining("Stop all servers first")]);
    url = await anEmptyDatabase();
  } finally {
    await first.close();
  }

  const restored = await run(["restore", file], url);
  expect([restored.code, restored.out]).toEqual([0, expect.stringMatching(/^\d+ rows are restored, as of /)]);
  const again = await run(["restore", file], url);
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining("not empty")]);

  const second = await startTestServer({ connectionString: url });
  try {
    const api = apiOf(second);
    const { body } = await api.get<StateRecord>(`/threads/${thread}/state`);
    expect(textsOf((body.values as { messages: [] }).messages)[0]).toBe("Hello\n\\.\nthere");
    const record = await api.get<{ metadata: { note: string } }>(`/threads/${thread}`);
    expect(record.body.metadata.note).toBe("a\\.\nb\t\u2028");
    const path = `/threads/${running.thread_id}/runs/${running.run_id}`;
    // The old server never gave the run back, so it is taken over when its lease has ended.
    await eventually("it goes on", async () => second.lines.some((line) => line.includes(running.run_id)));
    expect((await api.post(`${path}/cancel?wait=true`, {})).status).toBe(204);
    const next = { assistant_id: "agent", input: saying("And now?") };
    expect((await api.post(`/threads/${thread}/runs/wait`, next)).status).toBe(200);
  } finally {
    await second.close();
  }
  expect((await run(["restore", file, "--force"], url)).code).toBe(0);
});

test("restore is refused while a server lives, and not because of a pooler's remaining sessions", async () => {
  const folder = await aFolder();
  const file = join(folder.path, "all.gz");
  const url = await anEmptyDatabase();
  const run = (argv: string[]) => commandHere(argv, { cwd: folder.path, environment: { DATABASE_URL: url } });
  expect((await run(["backup", "--output", file])).code).toBe(0);

  const server = await startTestServer({ connectionString: url, role: "api" });
  try {
    const refused = await run(["restore", file, "--force"]);
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining("A server uses this database"),
    ]);
  } finally {
    await server.close();
  }

  const kept = new pg.Client({ connectionString: url, application_name: "threadloom" });
  await kept.connect();
  try {
    const restored = await run(["restore", file, "--force"]);
    expect([restored.code, restored.out]).toEqual([0, expect.stringContaining("rows are restored")]);
  } finally {
    await kept.end();
  }

  const seen =
    "insert into threadloom.workers (worker_id, graph_ids, seen_at) values (gen_random_uuid(), '{}', now() + interval '1 hour')";
  await query({ connectionString: url }, seen);
  const refused = await run(["restore", file, "--force"]);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining("was active")]);
});

test("the embedded database is restored from the backup of another, and psql connects to it", async () => {
  const folder = await aFolder();
  const server = await startTestServer();
  onTestFinished(() => server.close());
  await apiOf(server).post("/threads", {});
  const file = join(folder.path, "all.gz");
  const cwd = folder.path;
  await commandOf(["backup", "--output", file, "--database-url", server.connectionString], { cwd });
  const data = ["--data", folder.dataFolder];
  const restored = await commandOf(["restore", file, ...data], { cwd });
  expect([restored.code, restored.stderr]).toEqual([0, expect.stringContaining("threads: 1 rows")]);
  const printed = await commandOf(["psql", "--print-url", ...data], { cwd });
  expect([printed.code, printed.out]).toEqual([
    0,
    expect.stringMatching(/^postgresql:\/\/threadloom:[\da-f]{64}@127\.0\.0\.1:\d+\/threadloom\n$/),
  ]);
  const missing = await commandOf(["psql", ...data], { cwd, environment: { PATH: "/nowhere" } });
  expect([missing.code, missing.stderr]).toEqual([
    1,
    expect.stringContaining("There is no psql on this machine"),
  ]);
});

test("a file that is no backup, or an incomplete one, is refused without a change", async () => {
  const folder = await aFolder();
  const server = await startTestServer();
  onTestFinished(() => server.close());
  const cwd = folder.path;
  const file = join(cwd, "all.gz");
  await commandOf(["backup", "--output", file, "--database-url", server.connectionString], { cwd });
  await truncate(file, (await stat(file)).size - 20);
  await writeFile(join(cwd, "other.gz"), "no backup");
  const url = await anEmptyDatabase();
  for (const [name, sentence] of [
    ["all.gz", "is not whole"],
    ["other.gz", "can't be read as a backup"],
    ["missing.gz", "no such file"],
  ] as const) {
    const refused = await commandOf(["restore", name, "--force", "--database-url", url], { cwd });
    expect([name, refused.code, refused.stderr]).toEqual([name, 1, expect.stringContaining(sentence)]);
  }
});
