import { getEventListeners } from "node:events";
import { expect, onTestFinished, test, vi } from "vitest";
import { createStreamGate } from "../../console/src/server/stream-gate.ts";

const STREAM = "http://127.0.0.1/threads/one/stream/events";

/** A gate in front of a server whose streams end at once. */
const aGate = () => {
  const fetched = vi.fn<typeof fetch>(async () => new Response("", { status: 200 }));
  vi.stubGlobal("fetch", fetched);
  onTestFinished(() => void vi.unstubAllGlobals());
  const gate = createStreamGate();
  onTestFinished(() => gate.leave());
  return { gate, fetched };
};

test("streams wait until they are wanted, other requests do not", async () => {
  const { gate, fetched } = aGate();
  const opened = gate.fetch(`${STREAM}?channels=messages`, {});
  await gate.fetch("http://127.0.0.1/threads/one/commands", { method: "POST" });
  expect(fetched).toHaveBeenCalledTimes(1);
  gate.want(true);
  expect((await opened).status).toBe(200);
  expect(fetched).toHaveBeenCalledTimes(2);
});

test("a stream that waits for the gate again and again leaves no listener on its signal", async () => {
  const { gate } = aGate();
  const { signal } = new AbortController();
  for (let time = 0; time < 3; time += 1) {
    const opened = gate.fetch(STREAM, { signal });
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    gate.want(true);
    await opened;
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
    gate.leave();
    gate.want(false);
  }
});

test("a stream that is given up while it waits is refused, and one of a page that was left", async () => {
  const { gate, fetched } = aGate();
  const giving = new AbortController();
  const given = gate.fetch(STREAM, { signal: giving.signal });
  const left = gate.fetch(STREAM, {});
  giving.abort();
  await expect(given).rejects.toThrow(/aborted/);
  gate.leave();
  await expect(left).rejects.toMatchObject({ status: 499 });
  expect(fetched).not.toHaveBeenCalled();
});
