import { randomUUID } from "node:crypto";
import { uuid6, type Checkpoint } from "@langchain/langgraph-checkpoint";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCheckpointStorage } from "../../../src/state/checkpoints/storage.ts";
import { collected } from "../../helpers/collected.ts";
import { openThreadsRoom, type State, type Thread, type ThreadsRoom } from "./threads-room.ts";

/** States of a megabyte: the bytes read at a time must not depend on the number of requested states. */
const MEGABYTE = 1_000_000;
const THREADS = 20;
const STATES = 12;

let room: ThreadsRoom;
let ids: string[];
let long: string;

let clock = 0;
const put = async (threadId: string, big: string, metadata: object = {}): Promise<void> => {
  clock += 1;
  const checkpoint: Checkpoint = {
    v: 4,
    id: uuid6(clock),
    ts: new Date().toISOString(),
    channel_values: { big, state: clock },
    channel_versions: { big: clock, state: clock },
    versions_seen: {},
  };
  await room.checkpoints.saver.put(
    { configurable: { thread_id: threadId, checkpoint_ns: "" } },
    checkpoint,
    { source: "loop", step: clock, parents: {}, ...metadata },
    checkpoint.channel_versions,
  );
};
const aLargeText = () => randomUUID().padEnd(MEGABYTE, "x");

beforeAll(async () => {
  room = await openThreadsRoom();
  ids = [];
  for (let index = 0; index < THREADS; index += 1) {
    const { thread_id: id } = await room.aThread({ metadata: { kind: "large" } });
    await put(id, aLargeText());
    ids.unshift(id);
  }
  await room.database.query("update threadloom.threads set updated_at = now(), state_updated_at = now()");
  long = (await room.aThread({ metadata: { kind: "long" } })).thread_id;
  for (let index = 0; index < STATES; index += 1) await put(long, aLargeText());
});
afterAll(() => room.close());

/** A process with an empty cache that counts its statements and the characters read. */
const aReader = () => {
  const read = { characters: 0, statements: 0 };
  const database: typeof room.database = {
    ...room.database,
    async query<Row>(text: string, values?: unknown[]) {
      const rows = await room.database.query<Row>(text, values);
      read.statements += 1;
      read.characters += JSON.stringify(rows).length;
      return rows;
    },
  };
  return { storage: createCheckpointStorage({ database, logger: pino({ level: "silent" }) }), read };
};

describe("reading large states", () => {
  it("fetches many threads only as far as the consumer reads", async () => {
    const { storage, read } = aReader();
    const heads = storage.readHeads(ids);
    expect((await heads.next()).value).toMatchObject({ threadId: ids[0] });
    expect(read.characters).toBeLessThan(3 * MEGABYTE);
    const others = await collected(heads);
    expect(others.map(({ threadId }) => threadId)).toEqual(ids.slice(1));
    expect(read.characters).toBeGreaterThan(THREADS * MEGABYTE);
  });

  it("fetches a history only as far as the consumer reads", async () => {
    const { storage, read } = aReader();
    const history = storage.readHistory(long, "", { limit: 1_000 });
    const first = (await history.next()).value;
    expect(read.characters).toBeLessThan(3 * MEGABYTE);
    const others = await collected(history);
    const states = [first, ...others].map((state) => Number(state?.values.get("state")));
    expect(states).toHaveLength(STATES);
    expect(states).toEqual([...states].sort((one, other) => other - one));
  });

  it("fetches rows in pages, too, if the rows are large", async () => {
    const threadId = randomUUID();
    const note = "n".repeat(MEGABYTE / 2);
    for (let index = 0; index < 10; index += 1) await put(threadId, "small", { note: `${index} ${note}` });
    const { storage, read } = aReader();
    const history = storage.readHistory(threadId, "", { limit: 8 });
    const first = (await history.next()).value;
    expect(read.characters).toBeLessThan(3 * MEGABYTE);
    const all = [first, ...(await collected(history))];
    expect(all.map((state) => String(state?.metadata.note).slice(0, 1))).toEqual([..."98765432"]);
  });

  it("sends a history of large states whole, the newest first", async () => {
    const { body } = await room.request<State[]>("POST", `/threads/${long}/history`, { limit: 1_000 });
    expect(body).toHaveLength(STATES);
    expect(new Set(body.map(({ values }) => values.big)).size).toBe(STATES);
  });

  it("ends a page of threads early, and names the start of the next one", async () => {
    const seen: string[] = [];
    const sizes: number[] = [];
    for (let offset: number | undefined = 0; offset !== undefined;) {
      const search = { metadata: { kind: "large" }, limit: 1_000, offset };
      const { body, headers } = await room.request<Thread[]>("POST", "/threads/search", search);
      expect(headers["x-pagination-total"]).toBe(String(THREADS));
      for (const { values } of body) expect(String(values?.big).length).toBe(MEGABYTE);
      seen.push(...body.map(({ thread_id: id }) => id));
      sizes.push(body.length);
      const next: unknown = headers["x-pagination-next"];
      offset = next === undefined ? undefined : Number(next);
    }
    expect(sizes).toEqual([17, 3]);
    expect(seen).toEqual(ids);
    const without = { metadata: { kind: "large" }, limit: 1_000, select: ["thread_id"] };
    const { body, headers } = await room.request<Thread[]>("POST", "/threads/search", without);
    expect([body.length, headers["x-pagination-next"]]).toEqual([THREADS, undefined]);
  });
});
