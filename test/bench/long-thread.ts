import { OFFICIAL_DATABASE, type BareLibrary } from "./bare-library.ts";
import { median, now } from "./load.ts";
import type { ContenderName } from "./results.ts";
import { createThreads, type Bench, type Scenario } from "./scenario.ts";
import type { RemoteServer } from "./server-process.ts";

/** A conversation of turns of two messages: 150 characters asked, 100 answered. */
const QUESTION = "Please tell me more about that. ".repeat(5).slice(0, 150);
const INPUT = { messages: [{ role: "user", content: QUESTION }] };

/** LangGraph's in-memory saver keeps every state whole: beyond this it needs gigabytes. */
const MEMORY_SAVER_TURNS_AT_MOST = 200;
const READS = 15;
const WARM_UP_TURNS = 150;
/** Not turn by turn, because a long answer's garbage is collected during the turn after it. */
const BLOCK_OF_TURNS = 10;

/** Of the line in the chart. */
const POINTS = 50;

/** This many points, each the median of the turns around it. */
const pointsOf = (times: readonly number[]): [turn: number, milliseconds: number][] => {
  const size = Math.max(1, Math.ceil(times.length / POINTS));
  return Array.from({ length: Math.ceil(times.length / size) }, (_, index) => {
    const from = index * size;
    const to = Math.min(times.length, from + size);
    return [Math.round((from + 1 + to) / 2), median(times.slice(from, to))];
  });
};

/** Turns, counted from 1, whose median represents the start and the end of the conversation. */
const windowsOf = (turns: number): { early: [number, number]; late: [number, number] } =>
  turns >= 500
    ? { early: [11, 60], late: [turns - 49, turns] }
    : { early: [1, Math.min(20, turns)], late: [Math.max(1, turns - 19), turns] };

interface Conversation {
  label: "stream" | "wait";
  name: ContenderName;
  turn(): Promise<unknown>;
  bytes?(): Promise<number>;
  /** For conversations whose answers are the whole state. */
  answer?: {
    /** The same turn on a thread of its own, answered with only its changes: the difference is the answer. */
    turnWithout(): Promise<unknown>;
    /** Of the last answer. */
    bytes(): number;
  };
}

const elapsed = async (work: () => Promise<unknown>): Promise<number> => {
  const started = now();
  await work();
  return now() - started;
};

const converse = async (bench: Bench, turns: number, conversation: Conversation): Promise<void> => {
  const { label, name, answer } = conversation;
  const { early, late } = windowsOf(turns);
  const times: number[] = [];
  /** Of the turns without the answer, in blocks before those with it: other work of the machine affects both. */
  const timesWithout: number[] = [];
  const bytesAt = new Map<number, number>();
  /** The number of turns without the answer before the next one, after `done` turns. */
  const blockOf = (done: number): number =>
    done % BLOCK_OF_TURNS > 0 ? 0 : Math.min(BLOCK_OF_TURNS, turns - done);
  const marks = new Set([0, early[0] - 1, early[1], late[0] - 1, late[1]]);
  for (let turn = 0; turn <= turns; turn += 1) {
    if (turn > 0) {
      for (let more = blockOf(times.length); answer !== undefined && more > 0; more -= 1)
        timesWithout.push(await elapsed(() => answer.turnWithout()));
      times.push(await elapsed(() => conversation.turn()));
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
  const timeOf = ([from, to]: [number, number], of = times): number => median(of.slice(from - 1, to));
  add(`${label}, turns ${early.join("-")}`, "ms/turn", timeOf(early));
  add(`${label}, turns ${late.join("-")}`, "ms/turn", timeOf(late));
  if (label === "stream") {
    const series = { label: `${turns} turns, ${label}`, unit: "ms/turn" };
    bench.figures.addSeries("long-thread", series, name, pointsOf(times));
  }
  add(`${label}, growth`, "x", timeOf(late) / timeOf(early), label === "stream" ? "<= 1.5" : undefined);
  if (answer !== undefined) {
    for (const window of [early, late]) {
      const part = timeOf(window) - timeOf(window, timesWithout);
      add(`${label}, turns ${window.join("-")}, of which the answer`, "ms/turn", part);
    }
    add(`${label}, growth without the answer`, "x", timeOf(late, timesWithout) / timeOf(early, timesWithout));
    add(`${label}, length of the answer of turn ${turns}`, "KB", answer.bytes() / 1000);
  }
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

/** Bytes of tables with their indexes and TOAST on disk. */
export const relationBytes = async (bench: Bench, database: string, pattern: string): Promise<number> => {
  const rows = await bench.server.query<{ bytes: string }>(
    `select sum(pg_total_relation_size(oid)) as bytes from pg_class
     where relkind = 'r' and relname ~ '${pattern}' and relnamespace in (select oid from pg_namespace where nspname in ('public', 'threadloom'))`,
    database,
  );
  return Number(rows[0]?.bytes ?? NaN);
};

const streamTurn = ({ http }: RemoteServer, thread: string): Promise<unknown> => {
  const body = { assistant_id: "chat", input: INPUT, stream_mode: ["updates"] };
  return http.stream(`/threads/${thread}/runs/stream`, body, () => undefined);
};

/** Resolves to the answer. */
const waitTurn = async ({ http }: RemoteServer, thread: string): Promise<string> =>
  (await http.post(`/threads/${thread}/runs/wait`, { assistant_id: "chat", input: INPUT })).body;

/** Lets V8 compile the code before the first measured turns. */
const warmUp = async (bench: Bench): Promise<void> => {
  for (const remote of bench.remotes) {
    const [streamed, waited] = (await createThreads(remote, 2)) as [string, string];
    for (let turn = 0; turn < WARM_UP_TURNS; turn += 1) {
      await streamTurn(remote, streamed);
      await waitTurn(remote, waited);
    }
  }
  for (const library of [bench.libraries.none, bench.libraries.official]) {
    const config = library.newThread();
    for (let turn = 0; turn < WARM_UP_TURNS; turn += 1) await library.graph("chat").invoke(INPUT, config);
  }
};

const remoteConversations = async (bench: Bench, remote: RemoteServer, turns: number): Promise<void> => {
  const { http, name } = remote;
  const [streamed, waited, beside] = (await createThreads(remote, 3)) as [string, string, string];
  await converse(bench, turns, {
    label: "stream",
    name,
    turn: () => streamTurn(remote, streamed),
    ...(name === "threadloom" && { bytes: () => relationBytes(bench, "threadloom", "^checkpoint") }),
  });
  let lastAnswer = "";
  await converse(bench, turns, {
    label: "wait",
    name,
    async turn() {
      lastAnswer = await waitTurn(remote, waited);
    },
    answer: {
      turnWithout: () => streamTurn(remote, beside),
      bytes: () => Buffer.byteLength(lastAnswer),
    },
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
  // Without a saver the caller keeps the conversation.
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
      bytes: () => relationBytes(bench, OFFICIAL_DATABASE, "^checkpoint"),
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
    await warmUp(bench);
    for (const turns of bench.turns) {
      for (const remote of bench.remotes) await remoteConversations(bench, remote, turns);
      await libraryConversation(bench, bench.libraries.none, turns);
      if (turns <= MEMORY_SAVER_TURNS_AT_MOST)
        await libraryConversation(bench, bench.libraries.memory(), turns);
      await libraryConversation(bench, bench.libraries.official, turns);
    }
  },
};
