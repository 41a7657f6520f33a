import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readdir, stat } from "node:fs/promises";
import { Command } from "@langchain/langgraph";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { threadKey } from "../../../src/state/checkpoints/thread-key.ts";
import { databasePlaceOf } from "../../../src/cli/own-database.ts";
import { importThreads, type ImporterOptions } from "../../../src/cli/import/importer.ts";
import { createProgressLine, progressText } from "../../../src/cli/import/progress.ts";
import { Source } from "../../../src/cli/import/source.ts";
import { findPlace } from "../../../src/platform/database/embedded/place.ts";
import { systemAssistantId } from "../../../src/platform/domain/assistant-ids.ts";
import { EXAMPLES } from "../../graphs/helpers.ts";
import { temporaryFolder } from "../../helpers/temporary-folder.ts";
import { openStorage, type OpenStorage } from "../../state/checkpoints/open-storage.ts";
import { startTestServer } from "../../helpers/app.ts";
import { programOf } from "../../helpers/compiled-package.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase } from "../../helpers/database.ts";
import { openSourceDatabase, saying, SOURCE_SCHEMA, type SourceDatabase } from "./source-database.ts";

/** Threads of many kinds, by id; one of them has an id that is not a UUID. */
const LONG = randomUUID();
const THREADS: Record<string, string> = {
  [LONG]: "counter",
  "user-42/chat": "counter",
  [randomUUID()]: "fan-out",
  [randomUUID()]: "nested-approval",
  [randomUUID()]: "research",
  [randomUUID()]: "two-step",
  [randomUUID()]: "delta-messages",
  [randomUUID()]: "agent",
};
const NESTED = Object.keys(THREADS).find((id) => THREADS[id] === "nested-approval")!;

let filled: SourceDatabase;
let source: Source;
beforeAll(async () => {
  filled = await openSourceDatabase();
  source = new Source({
    connectionString: filled.connectionString,
    schema: SOURCE_SCHEMA,
    poolSize: 4,
  });
  for (const [id, graphId] of Object.entries(THREADS)) {
    const turns = id === LONG ? 40 : 3;
    if (graphId === "nested-approval") await filled.run(graphId, id, { text: "draft" });
    else if (graphId === "research") await filled.run(graphId, id, saying("PostgreSQL"));
    else {
      const texts = Array.from({ length: turns }, (_, turn) =>
        saying(`turn ${turn} ${"and more ".repeat(30)}`),
      );
      await filled.run(graphId, id, ...(graphId === "fan-out" ? texts.slice(0, 1) : texts));
    }
  }
});
afterAll(async () => {
  await source.close();
  await filled.close();
});

const importInto = ({ database, storage }: OpenStorage, options: Partial<ImporterOptions> = {}) =>
  importThreads({
    source,
    here: { database, checkpoints: storage },
    threadId: undefined,
    threadsTotal: 0,
    graphId: undefined,
    onProgress: () => undefined,
    signal: new AbortController().signal,
    ...options,
  });

const withTarget = async (work: (target: OpenStorage) => Promise<void>): Promise<void> => {
  const target = await openStorage();
  try {
    await work(target);
  } finally {
    await target.close();
  }
};

/** All data of a saver for a thread as plain data, without the thread's id. */
const tuplesOf = async (saver: BaseCheckpointSaver, threadId: string): Promise<unknown[]> => {
  const tuples: { id: string; data: unknown }[] = [];
  for await (const tuple of saver.list({ configurable: { thread_id: threadId } })) {
    const { config, checkpoint, metadata, parentConfig, pendingWrites } = tuple;
    const ns = config.configurable?.checkpoint_ns as string;
    const { v, id, ts, channel_values, channel_versions, versions_seen } = checkpoint;
    tuples.push({
      id: `${ns} ${id}`,
      data: JSON.parse(
        JSON.stringify({
          ns,
          ...{ v, id, ts, channel_values, channel_versions, versions_seen },
          metadata,
          parent: parentConfig?.configurable?.checkpoint_id as unknown,
          writes: [...(pendingWrites ?? [])].sort(([one], [other]) =>
            one < other ? -1 : one > other ? 1 : 0,
          ),
        }),
      ),
    });
  }
  return tuples.sort((one, other) => (one.id < other.id ? -1 : 1)).map(({ data }) => data);
};

/** All states of the history in LangGraph's form, with states of subgraphs, without the thread's id. */
const statesOf = async (graphId: string, saver: BaseCheckpointSaver, threadId: string): Promise<unknown> => {
  const graph = await filled.graph(graphId, saver);
  const config = { configurable: { thread_id: threadId } };
  const states: unknown[] = [await graph.getState(config, { subgraphs: true })];
  for await (const state of graph.getStateHistory(config)) states.push(state);
  return JSON.parse(JSON.stringify(states).replaceAll(JSON.stringify(threadId), '"thread"'));
};

const countRows = async ({ database }: OpenStorage): Promise<unknown> => {
  const [row] = await database.query(
    `select (select count(*)::integer from threadloom.threads) as threads,
       (select count(*)::integer from threadloom.checkpoints) as checkpoints,
       (select count(*)::integer from threadloom.checkpoint_writes) as writes,
       (select sum(octet_length(content))::integer from threadloom.checkpoint_contents) as bytes,
       (select count(*)::integer from threadloom.checkpoint_contents) as contents`,
  );
  return row;
};

describe("an import", () => {
  it("copies every state, every history and every pending write in LangGraph's form", () =>
    withTarget(async (target) => {
      const report = await importInto(target);
      expect(report).toMatchObject({ copied: 8, already: 0, skipped: [], failed: [], renamed: 1 });
      const saver = target.anotherProcess().saver;
      for (const [id, graphId] of Object.entries(THREADS)) {
        const key = threadKey(id);
        expect(await tuplesOf(saver, key), graphId).toEqual(await tuplesOf(filled.saver, id));
        expect(await statesOf(graphId, saver, key), graphId).toEqual(
          await statesOf(graphId, filled.saver, id),
        );
      }
    }));

  it("stores differences: a conversation's messages once", () =>
    withTarget(async (target) => {
      await importInto(target, { threadId: LONG });
      const { total_bytes: bytes } = await target.storage.storage(LONG);
      expect(bytes).toBeLessThan(150_000);
    }));

  it("changes nothing when it runs again, and copies new data", () =>
    withTarget(async (target) => {
      const id = randomUUID();
      await filled.run("counter", id, saying("one"), saying("two"));
      await importInto(target, { threadId: id });
      const before = await countRows(target);
      expect(await importInto(target, { threadId: id })).toMatchObject({
        copied: 0,
        already: 1,
        checkpoints: 0,
      });
      expect(await countRows(target)).toEqual(before);

      await filled.run("counter", id, saying("three"));
      expect(await importInto(target, { threadId: id })).toMatchObject({ copied: 1, checkpoints: 3 });
      const { saver } = target.anotherProcess();
      expect(await tuplesOf(saver, id)).toEqual(await tuplesOf(filled.saver, id));
    }));

  it("does not bring back what was pruned here, and copies what is new", () =>
    withTarget(async (target) => {
      const prunedHere = async (id: string): Promise<void> => {
        await importInto(target, { threadId: id });
        await target.storage.keepLatest(id);
        const before = await countRows(target);
        expect(await importInto(target, { threadId: id })).toMatchObject({ already: 1, checkpoints: 0 });
        expect(await countRows(target)).toEqual(before);
      };
      await prunedHere(NESTED);
      const id = randomUUID();
      await filled.run("counter", id, saying("one"), saying("two"));
      await prunedHere(id);
      await filled.run("counter", id, saying("three"));
      expect(await importInto(target, { threadId: id })).toMatchObject({ copied: 1, checkpoints: 3 });
      expect((await target.anotherProcess().readHead(id))?.values.get("count")).toBe("3");
    }));

  it("continues where it was stopped, with the same result as without a stop", () =>
    withTarget(async (target) => {
      const stopping = new AbortController();
      const first = await importInto(target, {
        threadId: LONG,
        signal: stopping.signal,
        onProgress: ({ checkpoints }) => (checkpoints > 0 ? stopping.abort() : undefined),
      });
      expect(first).toMatchObject({ copied: 0, stopped: true });
      expect(first.checkpoints).toBeGreaterThan(0);
      const resumed = { ...target, storage: target.anotherProcess() };
      expect(await importInto(resumed, { threadId: LONG })).toMatchObject({ copied: 1, stopped: false });
      expect(await tuplesOf(target.anotherProcess().saver, LONG)).toEqual(await tuplesOf(filled.saver, LONG));
      await withTarget(async (atOnce) => {
        await importInto(atOnce, { threadId: LONG });
        expect(await countRows(target)).toEqual(await countRows(atOnce));
      });
    }));

  it("skips threads that belong to other data here, or that continued here", () =>
    withTarget(async (target) => {
      await target.database.query("insert into threadloom.threads (thread_id) values ($1)", [LONG]);
      const foreign = await importInto(target, { threadId: LONG });
      expect(foreign.skipped).toEqual([
        { threadId: LONG, reason: expect.stringContaining("not imported") as string },
      ]);

      const id = randomUUID();
      await filled.run("counter", id, saying("one"));
      await importInto(target, { threadId: id });
      const here = await filled.graph("counter", target.storage.saver);
      await here.invoke(saying("two, here") as never, { configurable: { thread_id: id } });
      expect(await importInto(target, { threadId: id })).toMatchObject({ already: 1 });
      await filled.run("counter", id, saying("two, there"));
      expect((await importInto(target, { threadId: id })).skipped).toHaveLength(1);
    }));

  it("names the graph of the threads, for searches and states", () =>
    withTarget(async (target) => {
      const id = randomUUID();
      await filled.run("counter", id, saying("one"));
      await importInto(target, { threadId: id, graphId: "counter" });
      const [row] = await target.database.query<{ metadata: object }>(
        "select metadata from threadloom.threads where thread_id = $1",
        [id],
      );
      expect(row!.metadata).toEqual({
        imported_thread_id: id,
        graph_id: "counter",
        assistant_id: systemAssistantId("counter"),
      });
    }));

  it("names the threads with unreadable values, and copies the others", () =>
    withTarget(async (target) => {
      const [python, fine] = [randomUUID(), randomUUID()];
      await filled.run("counter", python, saying("hi"));
      await filled.run("counter", fine, saying("hi"));
      const [client] = [
        (filled.saver as unknown as { pool: { query(text: string, values: unknown[]): unknown } }).pool,
      ];
      await client!.query(
        `update ${SOURCE_SCHEMA}.checkpoint_blobs set type = 'msgpack' where thread_id = $1 and type = 'json'`,
        [python],
      );
      const report = await importInto(target);
      expect(report.failed).toEqual([
        { threadId: python, reason: expect.stringContaining("Python") as string },
      ]);
      expect((await target.storage.readHead(fine))?.values.get("count")).toBe("1");
      await client!.query(`delete from ${SOURCE_SCHEMA}.checkpoints where thread_id = $1`, [python]);
    }));
});

describe("imported threads", () => {
  it("can be found, read, and continued like others", async () => {
    const server = await startTestServer();
    const target = await openStorage();
    await target.close();
    const { openDatabase } = await import("../../../src/platform/database/database.ts");
    const { createCheckpointStorage } = await import("../../../src/state/checkpoints/storage.ts");
    const { pino } = await import("pino");
    const logger = pino({ level: "silent" });
    const database = openDatabase({
      connectionString: server.connectionString,
      poolSize: 4,
      applicationName: "import test",
      preparedStatements: true,
      logger,
    });
    try {
      const storage = createCheckpointStorage({ database, logger });
      await importInto({ database, storage } as OpenStorage);
      const search = await server.client
        .post("/threads/search")
        .send({ metadata: { imported_thread_id: "user-42/chat" } });
      const [found] = search.body as { thread_id: string; status: string; values: { messages: unknown[] } }[];
      expect(found).toMatchObject({ thread_id: threadKey("user-42/chat"), status: "idle" });
      expect(found!.values.messages).toHaveLength(3);
      const run = await server.client
        .post(`/threads/${found!.thread_id}/runs/wait`)
        .send({ assistant_id: "counter", input: saying("go on") });
      expect((run.body as { messages: unknown[]; count: number }).messages).toHaveLength(4);
      expect((run.body as { count: number }).count).toBe(4);

      const waiting = (await server.client.get(`/threads/${NESTED}`)).body as {
        status: string;
        interrupts: Record<string, { value: unknown }[]>;
      };
      expect(waiting.status).toBe("interrupted");
      expect(Object.values(waiting.interrupts)[0]).toHaveLength(1);
      // Its subgraph continues from its interrupt.
      const graph = await filled.graph(
        "nested-approval",
        createCheckpointStorage({ database, logger }).saver,
      );
      const config = { configurable: { thread_id: NESTED } };
      const resumed = await graph.invoke(new Command({ resume: "yes" }) as never, config);
      const there = await filled.graph("nested-approval", filled.saver);
      expect(resumed).toEqual(await there.invoke(new Command({ resume: "yes" }) as never, config));
    } finally {
      await database.close();
      await server.close();
    }
  });
});

describe("npm run import", () => {
  const start = (...options: string[]) => {
    const child = spawn(process.execPath, [programOf(), "import", ...options], {
      stdio: "pipe",
    });
    let output = "";
    child.stdout.on("data", (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
    return {
      kill: () => child.kill("SIGKILL"),
      ended: once(child, "close").then(([code]) => ({ code: code as number | null, output })),
    };
  };

  it("continues after a kill -9 in the middle, and ends with the same data as the source", async () => {
    const many = Array.from({ length: 16 }, () => randomUUID());
    await Promise.all(
      many.map((id) =>
        filled.run("counter", id, ...Array.from({ length: 12 }, (_, turn) => saying(`turn ${turn}`))),
      ),
    );
    await withTarget(async (target) => {
      const options = ["--from", filled.connectionString, "--schema", SOURCE_SCHEMA];
      const { connectionString } = target.database;
      const first = start(...options, "--database-url", connectionString);
      const stored = async (): Promise<number> => {
        const [row] = await target.database.query<{ count: number }>(
          "select count(*)::integer from threadloom.checkpoints",
        );
        return row!.count;
      };
      await eventually("the import has begun", async () => (await stored()) > 60);
      first.kill();
      expect((await first.ended).code).toBeNull();
      expect(await stored()).toBeLessThan(700);

      const { code, output } = await start(...options, "--database-url", connectionString).ended;
      expect(output).toMatch(/\d+\/\d+ threads, [\d,]+ checkpoints/);
      expect(output).toContain("had an id that is no UUID");
      expect(code).toBe(0);
      const saver = target.anotherProcess().saver;
      for (const id of [...many, ...Object.keys(THREADS)]) {
        expect(await tuplesOf(saver, threadKey(id))).toEqual(await tuplesOf(filled.saver, id));
      }
      await withTarget(async (atOnce) => {
        await importInto(atOnce);
        expect(await countRows(target)).toEqual(await countRows(atOnce));
      });
    });
  });

  it("only counts in a dry run, and leaves a database without tables unchanged", () =>
    withTarget(async ({ database }) => {
      await database.query("drop schema public cascade");
      await database.query("create schema public");
      const { code, output } = await start(
        ...["--from", filled.connectionString, "--schema", SOURCE_SCHEMA, "--dry-run"],
        ...["--database-url", database.connectionString],
      ).ended;
      expect(output).toMatch(/^The source has \d+ threads with [\d,]+ checkpoints/);
      expect(code).toBe(0);
      const tables = await database.query(
        "select 1 from information_schema.tables where table_schema = 'public'",
      );
      expect(tables).toEqual([]);
    }));

  it("creates no embedded database in a dry run", async () => {
    const folder = await temporaryFolder();
    try {
      const { code, output } = await start(
        ...["--from", filled.connectionString, "--schema", SOURCE_SCHEMA, "--thread", LONG, "--dry-run"],
        ...["--data", folder.dataFolder],
      ).ended;
      expect(output).toMatch(/^The source has 1 thread with 120 checkpoints and /);
      expect(code).toBe(0);
      expect(await readdir(folder.path)).toEqual([]);
      expect(await stat((await findPlace(folder.dataFolder)).folder).catch(() => "none")).toBe("none");
    } finally {
      await folder.remove();
    }
  });

  it("refuses a graph that langgraph.json does not name, before it opens a database", async () => {
    const { code, output } = await start(
      ...["--from", "postgresql://127.0.0.1:1/nowhere", "--graph", "agnet", "--config", EXAMPLES],
    ).ended;
    expect(output).toMatch(
      /^threadloom import: .*langgraph\.json names no graph 'agnet'\. Did you mean 'agent'\? It names agent, approval, research;/,
    );
    expect(code).toBe(1);
  });

  it("reports a source without such tables, or a missing one", async () => {
    const fresh = await freshDatabase();
    try {
      const none = await start("--from", fresh.connectionString, "--database-url", fresh.connectionString)
        .ended;
      expect(none).toMatchObject({ code: 1 });
      expect(none.output).toMatch(/has no tables of the official Postgres saver in the schema 'public'/);
      const url = new URL(fresh.connectionString);
      url.pathname = "/nowhere";
      const away = await start("--from", url.href, "--database-url", fresh.connectionString).ended;
      expect(away.output).toMatch(/^threadloom import: The database .*\/nowhere can't be used: .*\n$/);
    } finally {
      await fresh.drop();
    }
  });
});

describe("the command line", () => {
  const environment = { DATABASE_URL: "postgresql://here/threadloom" };
  it("takes this server's database from the option or the environment", () => {
    expect(databasePlaceOf({}, environment).url).toBe(environment.DATABASE_URL);
    expect(databasePlaceOf({ databaseUrl: "postgres://other/db" }, environment).url).toBe(
      "postgres://other/db",
    );
  });
  it("prefers the direct connection beside a pooler, which a migration needs", () => {
    const both = { ...environment, DATABASE_DIRECT_URL: "postgresql://direct/threadloom" };
    expect(databasePlaceOf({}, both).url).toBe(both.DATABASE_DIRECT_URL);
    expect(databasePlaceOf({ databaseUrl: "postgres://other/db" }, both).url).toBe("postgres://other/db");
  });
});

describe("the progress of an import", () => {
  const progress = { threads: 250, threadsTotal: 1_000, checkpoints: 4_321, seconds: 10 };
  it("contains threads, checkpoints, rate and remaining time", () => {
    expect(progressText(progress)).toBe("250/1,000 threads, 4,321 checkpoints, 432/s, 0:30 left");
  });
  it("is redrawn in one line on a terminal, and in separate lines elsewhere", () => {
    const drawn: string[] = [];
    const draw = createProgressLine({ write: (text) => drawn.push(text), terminal: true });
    draw(progress);
    draw(progress, true);
    const text = `\r\u001b[2K${progressText(progress)}`;
    expect(drawn).toEqual([text, `${text}\n`]);
    const lines: string[] = [];
    const plain = createProgressLine({ write: (text) => lines.push(text), terminal: false });
    plain(progress);
    plain(progress, true);
    expect(lines).toEqual([`${progressText(progress)}\n`]);
  });
});
