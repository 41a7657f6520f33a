import { expect, test } from "vitest";
import type { RunEvent } from "../../../src/engine/events/log.ts";
import type { RunReader } from "../../../src/engine/events/channel.ts";
import { deliver, type EventSink } from "../../../src/engine/events/transports/event-sink.ts";

/** Applies to every transport: this one records its calls. */

const event = (seq: number): RunEvent => ({ seq, event: "values", data: "{}" });
type News = RunEvent[] | "ended" | "lost";
type Taken = Awaited<ReturnType<EventSink["write"]>>;

const aDelivery = (news: (News | Error)[], written: (Taken | Error)[] = []) => {
  const did: string[] = [];
  let leave = (): void => undefined;
  let isGone = false;
  const reader: RunReader = {
    async next() {
      const next = news.shift() ?? "ended";
      if (next instanceof Error) throw next;
      return next;
    },
    close: () => void did.push("reader closed"),
  };
  const sink: EventSink = {
    get isGone() {
      return isGone;
    },
    onGone: (listener) => (leave = listener),
    open: () => void did.push("opened"),
    async write(events) {
      did.push(`wrote ${events.map(({ seq }) => seq).join(" ")}`);
      const answer = written.shift() ?? "taken";
      if (answer instanceof Error) throw answer;
      return answer;
    },
    drop: () => void did.push("dropped"),
    close: () => void did.push("closed"),
  };
  const faults: unknown[] = [];
  return {
    did,
    faults,
    deliver: () => deliver(reader, sink, (error) => faults.push(error)),
    leave() {
      isGone = true;
      leave();
    },
  };
};

const LEFT_ALONE = ["closed", "reader closed"];

test("a client receives the events batch by batch and then the end, which does not close its connection", async () => {
  const { did, deliver: delivered } = aDelivery([[event(0), event(1)], [event(2)], "ended"]);
  expect(await delivered()).toBe("ended");
  expect(did).toEqual(["opened", "wrote 0 1", "wrote 2", ...LEFT_ALONE]);
});

test.each<[string, (News | Error)[], Taken[]]>([
  ["whose reader is lost", [[event(0)], "lost"], []],
  ["who reads too slowly", [[event(0)], [event(1)]], ["stalled"]],
])("a client %s is cut off", async (_, news, written) => {
  const { did, deliver: delivered } = aDelivery(news, written);
  expect(await delivered()).toBe("dropped");
  expect(did).toEqual(["opened", "wrote 0", "dropped", ...LEFT_ALONE]);
});

test.each<[string, (News | Error)[], Error[]]>([
  ["read", [new Error("no")], []],
  ["written", [[event(0)]], [new Error("no")]],
])("a client whose events can't be %s is cut off, and the log says so", async (_, news, written) => {
  const { did, faults, deliver: delivered } = aDelivery(news, written);
  expect(await delivered()).toBe("dropped");
  expect(faults).toEqual([new Error("no")]);
  expect(did.slice(-3)).toEqual(["dropped", ...LEFT_ALONE]);
});

test("after a client leaves, its data is released and nothing more is written", async () => {
  const leaving = aDelivery([[event(0)], [event(1)]], ["gone"]);
  expect(await leaving.deliver()).toBe("disconnected");
  expect(leaving.did).toEqual(["opened", "wrote 0", ...LEFT_ALONE]);
  const left = aDelivery([[event(0)]]);
  const end = left.deliver();
  left.leave();
  expect(await end).toBe("disconnected");
  expect(left.did).toEqual(["opened", "reader closed", ...LEFT_ALONE]);
  const absent = aDelivery([[event(0)]]);
  absent.leave();
  expect(await absent.deliver()).toBe("disconnected");
  expect(absent.did).toEqual(LEFT_ALONE);
});
