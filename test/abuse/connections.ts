/**
 * A process that holds connections to a server: idle ones after one request, and slow ones, which send a byte of a header or of a body each
 * second, or read a kilobyte of their answer. Writes "open" when all are open, and a line of JSON when its input ends. Arguments: the
 * server's address, the number of each kind, credentials.
 */
import { connect, type Socket } from "node:net";
import type { Credentials } from "./callers.ts";

export const KINDS = ["idle", "slow readers", "slow bodies", "slow headers"] as const;
export type Kind = (typeof KINDS)[number];

export interface Held {
  opened: number;
  failed: number;
  /** Connections that noticed their end: a slow reader first has to read the rest in the system's buffers. */
  gone: number;
  /** Seconds from opening to the first and the last closing. */
  firstGone: number;
  lastGone: number;
}
export type HeldConnections = Record<Kind, Held>;

const OPENED_AT_A_TIME = 100;
const DROP_MS = 1_000;
const TAKEN_BYTES = 1_000;
/** Together more than the buffers of the system hold. */
const ASKED_BY_SLOW_READERS = 12;

const [address = "", counts = "", credentials = "{}"] = process.argv.slice(2);
const { hostname, port } = new URL(address);
const wanted = JSON.parse(counts) as Record<Kind, number>;
const lines = Object.entries(JSON.parse(credentials) as Credentials).map(
  ([name, value]) => `${name}: ${value}\r\n`,
);
const head = (request: string, more = ""): string =>
  `${request} HTTP/1.1\r\nHost: localhost\r\n${lines.join("")}${more}`;

/** The first bytes of each kind. */
const FIRST: Record<Kind, string> = {
  idle: `${head("GET /ok")}\r\n`,
  "slow headers": head("GET /ok", "X-Slow: "),
  "slow bodies": `${head("POST /threads", "Content-Type: application/json\r\nContent-Length: 100000\r\n")}\r\n{"metadata":{"x":"`,
  "slow readers": `${head("GET /openapi.json")}\r\n`.repeat(ASKED_BY_SLOW_READERS),
};

const held = Object.fromEntries(
  KINDS.map((kind) => [
    kind,
    { opened: 0, failed: 0, gone: 0, firstGone: Number.MAX_SAFE_INTEGER, lastGone: 0 },
  ]),
) as HeldConnections;
const slow: { socket: Socket; kind: Kind }[] = [];

const hold = async (kind: Kind): Promise<void> =>
  await new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    let openedAt: number | undefined;
    socket.on("error", () => undefined);
    socket.on("connect", () => {
      openedAt = performance.now();
      held[kind].opened += 1;
      socket.write(FIRST[kind]);
      if (kind !== "idle") slow.push({ socket, kind });
      if (kind === "slow readers") socket.pause();
      else socket.resume();
      resolve();
    });
    socket.on("end", () => socket.destroy());
    socket.on("close", () => {
      if (openedAt === undefined) {
        held[kind].failed += 1;
        resolve();
        return;
      }
      held[kind].gone += 1;
      const seconds = Math.round((performance.now() - openedAt) / 100) / 10;
      held[kind].firstGone = Math.min(held[kind].firstGone, seconds);
      held[kind].lastGone = Math.max(held[kind].lastGone, seconds);
    });
  });

setInterval(() => {
  for (const { socket, kind } of slow) {
    if (kind === "slow readers") socket.read(TAKEN_BYTES);
    else if (socket.writable) socket.write("x");
  }
}, DROP_MS);
// The kind with the shortest time comes last: its time begins when it is opened, and all have to be open during the measurement of others.
for (const kind of KINDS) {
  for (let left = wanted[kind]; left > 0; left -= OPENED_AT_A_TIME)
    await Promise.all(Array.from({ length: Math.min(left, OPENED_AT_A_TIME) }, async () => await hold(kind)));
}
process.stdout.write("open\n");
process.stdin.on("end", () => process.stdout.write(`${JSON.stringify(held)}\n`, () => process.exit()));
process.stdin.resume();
