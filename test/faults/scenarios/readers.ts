import { connect, type Socket } from "node:net";
import { readFile } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";
import { eventually } from "../../helpers/conditions.ts";
import { openStream } from "../../helpers/server-sent-events.ts";
import { seconds } from "../bench.ts";
import { complaintsWhere, type Scenario } from "../scenario.ts";

const MEGABYTE = 1024 * 1024;
/** A little longer than the server waits for a reader. */
const STALLED_MS = 66_000;
/** The growth of a heap before a collection is worth it. */
const HEAP_SLACK_BYTES = 100 * MEGABYTE;

const residentBytes = async (pid: number): Promise<number> => {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) * 1024;
};

/** A client that requests a stream and then reads this many bytes per second. */
const openSlowReader = (url: string, path: string, bytesPerSecond: number) => {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  let closed = false;
  let tail = "";
  socket.on("error", () => undefined);
  socket.write(
    `GET ${path} HTTP/1.1\r\nHost: test\r\nLast-Event-ID: -1\r\nAccept: text/event-stream\r\n\r\n`,
  );
  socket.pause();
  const timer = setInterval(() => bytesPerSecond > 0 && socket.read(bytesPerSecond / 4), 250);
  socket.on("close", () => {
    clearInterval(timer);
    closed = true;
  });
  return {
    /** Reads the buffered data: without reading, a client does not notice a disconnect. */
    catchUp(): void {
      clearInterval(timer);
      socket.on("data", (chunk: Buffer) => (tail = (tail + chunk.toString("latin1")).slice(-5)));
      socket.resume();
    },
    /** Closed without the clean end of the response. */
    wasDropped: (): boolean => closed && tail !== "0\r\n\r\n",
    leave: (): void => void socket.destroy(),
  };
};

/** 14: readers that read almost nothing. */
export const slowReaders = ({ readers, tokens }: { readers: number; tokens: number }): Scenario => ({
  number: 14,
  title: "slow readers beside a fast one",
  criterion: "memory bounded; the fast reader unharmed; one that takes nothing dropped, and able to resume",
  scaled: `${readers} slow readers instead of 200, half at 1 KB/s, half that take nothing`,
  async run({ bench }) {
    const server = await bench.start();
    const threadId = await server.api.aThread();
    const warm = await server.api.aThread();
    await server.api.aFinishedRun(warm, { assistant_id: "tokens", input: { messages: [], tokens: 200 } });
    const before = await residentBytes(server.pid);
    const run = await server.api.aRun(threadId, {
      assistant_id: "tokens",
      input: { messages: [], tokens },
      stream_mode: ["messages-tuple"],
      stream_resumable: true,
    });
    const path = `/threads/${threadId}/runs/${run.run_id}/stream`;
    const slow = Array.from({ length: readers }, (_, index) =>
      openSlowReader(server.url, path, index % 2 === 0 ? 1024 : 0),
    );
    const startedAt = Date.now();
    const fast = await openStream(`${server.url}${path}`, { headers: { "last-event-id": "-1" } });
    const all = await fast.rest();
    const fastMs = Date.now() - startedAt;
    const bytes = all.reduce((sum, event) => sum + event.frame.length + 2, 0);
    const during = await residentBytes(server.pid);
    // The server waits a minute for them, then disconnects them.
    await pause(STALLED_MS);
    const stalled = slow.filter((_, index) => index % 2 === 1);
    for (const reader of stalled) reader.catchUp();
    const dropped = (): number => stalled.filter((reader) => reader.wasDropped()).length;
    await eventually("the stalled ones are dropped", () => dropped() === stalled.length).catch(
      () => undefined,
    );
    const middle = all[Math.floor(all.length / 2)];
    const resumed = await openStream(`${server.url}${path}`, {
      headers: { "last-event-id": String(middle?.id ?? -1) },
    });
    const rest = await resumed.rest();
    for (const reader of slow) reader.leave();
    const more = during - before;
    return {
      figure: `stream of ${(bytes / MEGABYTE).toFixed(1)} MB; fast reader done after ${seconds(fastMs)}; ${(more / MEGABYTE).toFixed(0)} MB more for ${readers} slow ones; ${dropped()} of ${stalled.length} stalled ones dropped; resumed from the middle: ${rest.length} events`,
      complaints: complaintsWhere({
        "memory grew with the readers": more > bytes + (readers * MEGABYTE) / 2 + HEAP_SLACK_BYTES,
        "a reader that took nothing was not dropped": dropped() < stalled.length,
        "a resumed one did not get the rest": rest.length !== all.length - Math.floor(all.length / 2) - 1,
        "the fast reader missed events": all.length < tokens,
      }),
    };
  },
});

/** 15: the cost of an idle stream. */
export const idleStreams = ({ streams }: { streams: number }): Scenario => ({
  number: 15,
  title: "idle streams",
  criterion: "KB per connection; one LISTEN connection per process",
  scaled: `${streams} streams instead of 5,000`,
  async run({ bench }) {
    const server = await bench.start();
    const threadId = await server.api.aThread();
    const run = await server.api.aRun(threadId, {
      assistant_id: "sleep",
      input: { messages: [], milliseconds: 600_000 },
    });
    const path = `/threads/${threadId}/runs/${run.run_id}/stream?stream_mode=updates`;
    const open = (): Promise<Socket> =>
      new Promise((resolve, reject) => {
        const { hostname, port } = new URL(server.url);
        const socket = connect(Number(port), hostname);
        socket.once("error", reject);
        socket.once("data", () => resolve(socket));
        socket.write(`GET ${path} HTTP/1.1\r\nHost: test\r\nAccept: text/event-stream\r\n\r\n`);
      });
    const sockets: Socket[] = [];
    const openMany = async (count: number): Promise<void> => {
      for (let opened = 0; opened < count; opened += 50) {
        sockets.push(...(await Promise.all(Array.from({ length: Math.min(50, count - opened) }, open))));
      }
    };
    await openMany(100); // warm-up
    await pause(2_000);
    const before = await residentBytes(server.pid);
    await openMany(streams);
    await pause(2_000);
    const after = await residentBytes(server.pid);
    const [connections] = await bench.query<{ listeners: number; all: number }>(
      `select count(*) filter (where application_name = 'threadloom listener')::int as listeners, count(*)::int as all
       from pg_stat_activity where datname = current_database() and application_name like 'threadloom%'`,
    );
    const alive = sockets.filter((socket) => !socket.destroyed).length;
    for (const socket of sockets) socket.destroy();
    await server.api.cancel(threadId, run.run_id);
    const perStream = (after - before) / streams / 1024;
    return {
      figure: `${streams} streams: ${perStream.toFixed(1)} KB each (this process holds none of the clients' side); ${connections?.listeners} LISTEN connection, ${connections?.all} in all`,
      complaints: complaintsWhere({
        "more than one LISTEN connection": connections?.listeners !== 1,
        "more than 40 KB per stream": perStream > 40,
        "streams were lost": alive !== sockets.length,
      }),
    };
  },
});
