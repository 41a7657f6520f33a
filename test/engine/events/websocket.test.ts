import { EventEmitter } from "node:events";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { shareSocket } from "../../../src/engine/events/transports/websocket.ts";

/** Writers of one WebSocket: messages stay whole, and a stalled client is distinguished from a slow one. */

interface Sent {
  piece: string;
  fin: boolean;
  taken: () => void;
}

/** A socket whose client reads only when the test lets it. */
const aSocket = () => {
  const events = new EventEmitter();
  const sent: Sent[] = [];
  let waiting = 0;
  const socket = {
    OPEN: 1,
    readyState: 1,
    get bufferedAmount() {
      return waiting;
    },
    send(piece: string, { fin }: { fin: boolean }, taken: () => void) {
      waiting += piece.length;
      sent.push({
        piece,
        fin,
        taken() {
          waiting -= piece.length;
          taken();
        },
      });
    },
    terminate: vi.fn(),
    once: (name: string, listener: () => void) => events.once(name, listener),
  };
  return { socket, sent, close: () => events.emit("close"), shared: shareSocket(socket as never) };
};
const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
};

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

test("a large message is sent in pieces, without another message between them", async () => {
  const { shared, sent } = aSocket();
  const large = "x".repeat(200_000);
  const both = Promise.all([
    shared.send({ before: "<", data: large, after: ">" }),
    shared.send({ data: "second" }),
  ]);
  for (let taken = 0; taken < 6; taken += 1) {
    await turns();
    sent[taken]?.taken();
  }
  await turns();
  for (const one of sent) one.taken();
  expect(await both).toEqual(["taken", "taken"]);
  expect(sent.map(({ fin }) => fin)).toEqual([...Array(sent.length - 2).fill(false), true, true]);
  expect(
    sent
      .slice(0, -1)
      .map(({ piece }) => piece)
      .join(""),
  ).toBe(`<${large}>`);
  expect(Math.max(...sent.map(({ piece }) => piece.length))).toBeLessThanOrEqual(65_536);
});

test("a client that reads nothing for a minute is stalled, and a disconnected one is gone", async () => {
  const { shared, close } = aSocket();
  const stalled = shared.send({ data: "x".repeat(100_000) });
  await vi.advanceTimersByTimeAsync(59_000);
  const other = aSocket();
  const gone = other.shared.send({ data: "x".repeat(100_000) });
  await turns();
  other.close();
  expect(await gone).toBe("gone");
  await vi.advanceTimersByTimeAsync(2_000);
  expect(await stalled).toBe("stalled");
  close();
  expect([shared.isGone, await shared.send({ data: "more" })]).toEqual([true, "gone"]);
});
