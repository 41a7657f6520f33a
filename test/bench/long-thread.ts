import type { BareLibrary } from "./bare-library.ts";
import { median, now } from "./load.ts";
import type { ContenderName } from "./report.ts";
import { createThreads, type Bench, type Scenario } from "./scenario.ts";
import type { RemoteServer } from "./server-process.ts";

/** A conversation of turns of two messages: 150 characters asked, 100 answered. */
const QUESTION = "Please tell me more about that. ".repeat(5).slice(0, 150);
const INPUT = { messages: [{ role: "user", content: QUESTION }] };

/** LangGraph's in-memory saver keeps every state whole: beyond this it needs gigabytes. */
const MEMORY_SAVER_TURNS_AT_MOST = 200;
const READS = 15;

/** Turns, counted from 1, whose median stands for the start and for the end of the conversation. */
const windowsOf = (turns: number): { early: [number, number]; late: [number, number] } =>
  turns >= 500
    ? { early: [11, 60], late: [turns - 49, turns] }
    : { early: [1, Math.min(20, turns)], late: [Math.max(1, turns - 19), turns] };

interface Conversation {
  label: "stream" | "wait";
  name: ContenderName;
  turn(): Promise<unknown>;
  /** Bytes that the database needs for the conversation; undefined without one. */
  bytes?(): Promise<number>;
}

const converse = async (bench: Bench, turns: number, conversation: Conversation): Promise<void> => {
  const { label, name } = conversation;
  const { early, late } = windowsOf(turns);
  const times: number[] = [];
  const bytesAt = new Map<number, number>();
  const marks = new Set([0, early[0] - 1, early[1], late[0] - 1, late[1]]);
  for (let turn = 0; turn <= turns; turn += 1) {
    if (turn > 0) {
      const started = now();
      await conversation.turn();
      times.push(now() - started);
    }
    if (marks.has(turn) && conversation.bytes !== undefined) bytesAt.set(turn, await conversation.bytes());
    if (turn > 0 && turn % 250 === 0)
      bench.progress(`long-thread: ${name}: ${label}: turn ${turn} of ${turns}`);
  }
  const add = (what: string, unit: string, value: number, wanted?: string): void =>
    bench.figures.add(
      "long-thread",
      { label: `${turns} turns, ${what}`, unit, better: "less", ...(wanted && { wanted }) },
      name,
      value,
    );
  const timeOf = ([from, to]: [number, number]): number => median(times.slice(from - 1, to));
  add(`${label}, turns ${early.join("-")}`, "ms/turn", timeOf(early));
  add(`${label}, turns ${late.join("-")}`, "ms/turn", timeOf(late));
  add(`${label}, growth`, "x", timeOf(late) / timeOf(early), label === "stream" ? "<= 1.5" : undefined);
  if (conversation.bytes !== undefined && label === "stream") {
    const bytesOf = ([from, to]: [number, number]): number =>
      (bytesAt.get(to)! - bytesAt.get(from - 1)!) / (to - from + 1);
    add(`disk, turns ${early.join("-")}`, "bytes/turn", bytesOf(early));
    add(`disk, turns ${late.join("-")}`, "bytes/turn", bytesOf(late));
    add("disk", "KB", (bytesAt.get(turns)! - bytesAt.get(0)!) / 1000);
  }
  bench.progress(
    `long-thread: ${name}: ${label}: ${timeOf(early).toFixed(1)} ms/turn at first, ${timeOf(late).toFixed(1)} at last`,
  );
};

/** Bytes of tables with their indexes and TOAST, as they stand on disk. */
const relationBytes = async (bench: Bench, database: string, pattern: string): Promise<number> => {
  const rows = await bench.server.query<{ bytes: string }>(
    `select sum(pg_total_relation_size(oid)) as bytes from pg_class
     where relkind = 'r' and relnamespace = 'public'::regnamespace and relname ~ '${pattern}'`,
    database,
  );
  return Number(rows[0]?.bytes ?? NaN);
};

const remoteConversations = async (bench: Bench, remote: RemoteServer, turns: number): Promise<void> => {
  const { http, name } = remote;
  const [streamed, waited] = (await createThreads(remote, 2)) as [string, string];
  await converse(bench, turns, {
    label: "stream",
    name,
    turn: () =>
      http.stream(
        `/threads/${streamed}/runs/stream`,
        { assistant_id: "chat", input: INPUT, stream_mode: ["updates"] },
        () => undefined,
      ),
    ...(name === "threadloom" && { bytes: () => relationBytes(bench, "threadloom", "^checkpoint") }),
  });
  await converse(bench, turns, {
    label: "wait",
    name,
    turn: () => http.post(`/threads/${waited}/runs/wait`, { assistant_id: "chat", input: INPUT }),
  });

  const reads: [string, string, string][] = [
    ["state", `/threads/${streamed}/state`, "<= 50"],
    ["history of 10", `/threads/${streamed}/history?limit=10`, "<= 100"],
  ];
  for (const [what, path, wanted] of reads) {
    const times: number[] = [];
    for (let read = 0; read < READS; read += 1) {
      const started = now();
      await http.get(path);
      times.push(now() - started);
    }
    bench.figures.add(
      "long-thread",
      { label: `${turns} turns, ${what}`, unit: "ms", better: "less", wanted },
      name,
      median(times),
    );
  }
  if (name === "threadloom") {
    const storage = await http.json<{ total_bytes: number }>(`/threads/${streamed}/storage`);
    bench.figures.add(
      "long-thread",
      { label: `${turns} turns, stored text (GET /threads/{id}/storage)`, unit: "KB", better: "less" },
      name,
      storage.total_bytes / 1000,
    );
  }
};

const libraryConversation = async (bench: Bench, library: BareLibrary, turns: number): Promise<void> => {
  const graph = library.graph("chat");
  const config = library.newThread();
  // Without a saver the caller carries the conversation.
  let messages: unknown[] = [];
  await converse(bench, turns, {
    label: "stream",
    name: library.name,
    async turn() {
      const input = { messages: [...messages, ...INPUT.messages] };
      const streamMode = library.name === "none" ? "values" : "updates";
      for await (const chunk of await graph.stream(input, { ...config, streamMode })) {
        if (library.name === "none") messages = (chunk as { messages: unknown[] }).messages;
      }
    },
    ...(library.name === "official" && {
      bytes: () => relationBytes(bench, "official_saver", "^checkpoint"),
    }),
  });
  if (library.name === "none") return;
  const reads: [string, () => Promise<unknown>][] = [
    ["state", async () => JSON.stringify((await graph.getState(config)).values)],
    [
      "history of 10",
      async () => {
        for await (const { values } of graph.getStateHistory(config, { limit: 10 })) JSON.stringify(values);
      },
    ],
  ];
  for (const [what, read] of reads) {
    const times: number[] = [];
    for (let count = 0; count < READS; count += 1) {
      const started = now();
      await read();
      times.push(now() - started);
    }
    bench.figures.add(
      "long-thread",
      { label: `${turns} turns, ${what}`, unit: "ms", better: "less" },
      library.name,
      median(times),
    );
  }
};

export const longThread: Scenario = {
  name: "long-thread",
  about: "one conversation of turns of two messages (250 characters a turn): how a turn's cost grows",
  onRequest: true,
  async run(bench) {
    for (const turns of bench.turns) {
      for (const remote of bench.remotes) await remoteConversations(bench, remote, turns);
      await libraryConversation(bench, bench.libraries.none, turns);
      if (turns <= MEMORY_SAVER_TURNS_AT_MOST)
        await libraryConversation(bench, bench.libraries.memory(), turns);
      await libraryConversation(bench, bench.libraries.official, turns);
    }
  },
};
