import { getEventListeners } from "node:events";
import { expect, onTestFinished, test, vi } from "vitest";
import { createStreamGate } from "../../console/src/server/stream-gate.ts";
import { fetchWithRetry, retryAfterSeconds, withRetryTime } from "../../console/src/server/rate-limit.ts";

const STREAM = "http://127.0.0.1/threads/one/stream/events";

/** A gate before a server whose streams end at once. */
const aGate = () => {
  const fetched = vi.fn<typeof fetch>(async () => new Response("", { status: 200 }));
  vi.stubGlobal("fetch", fetched);
  onTestFinished(() => void vi.unstubAllGlobals());
  const gate = createStreamGate();
  onTestFinished(() => gate.close());
  return { gate, fetched };
};

test("streams wait until they are needed, other requests do not", async () => {
  const { gate, fetched } = aGate();
  const opened = gate.fetch(`${STREAM}?channels=messages`, {});
  await gate.fetch("http://127.0.0.1/threads/one/commands", { method: "POST" });
  expect(fetched).toHaveBeenCalledTimes(1);
  gate.setWanted(true);
  expect((await opened).status).toBe(200);
  expect(fetched).toHaveBeenCalledTimes(2);
});

test("a stream that waits for the gate repeatedly leaves no listener on its signal", async () => {
  const { gate } = aGate();
  const { signal } = new AbortController();
  for (let time = 0; time < 3; time += 1) {
    const opened = gate.fetch(STREAM, { signal });
    expect(getEventListeners(signal, "abort")).toHaveLength(1);
    gate.setWanted(true);
    await opened;
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
    gate.close();
    gate.setWanted(false);
  }
});

test("a stream that is given up while it waits is refused, and so is one of a closed page", async () => {
  const { gate, fetched } = aGate();
  const giving = new AbortController();
  const given = gate.fetch(STREAM, { signal: giving.signal });
  const left = gate.fetch(STREAM, {});
  giving.abort();
  await expect(given).rejects.toThrow(/aborted/);
  gate.close();
  await expect(left).rejects.toMatchObject({ status: 499 });
  expect(fetched).not.toHaveBeenCalled();
});

test("a caller that waits for the next command learns whether it was accepted, with Retry-After if it came too often", async () => {
  const { gate, fetched } = aGate();
  const commands = "http://127.0.0.1/threads/one/commands";
  const taken = gate.nextCommand();
  await gate.fetch(commands, { method: "POST" });
  await taken;
  for (const [headers, sentence] of [
    [{}, "Too large."],
    [{ "retry-after": "7" }, "Too large. Try again in 7 seconds."],
  ] as const) {
    const status = "retry-after" in headers ? 429 : 413;
    fetched.mockResolvedValueOnce(Response.json({ detail: "Too large." }, { status, headers }));
    const refused = gate.nextCommand();
    void gate.fetch(commands, { method: "POST" }).catch(() => undefined);
    await expect(refused).rejects.toMatchObject({ status, message: sentence });
  }
});

test("a read that came too often is retried after the wait, and no other request is", async () => {
  const { fetched } = aGate();
  const tooMany = (after: string) =>
    fetched.mockResolvedValueOnce(new Response("", { status: 429, headers: { "retry-after": after } }));
  tooMany("0");
  expect((await fetchWithRetry("http://127.0.0.1/info")).status).toBe(200);
  expect(fetched).toHaveBeenCalledTimes(2);
  tooMany("3600");
  expect((await fetchWithRetry("http://127.0.0.1/info")).status).toBe(429);
  tooMany("0");
  expect((await fetchWithRetry("http://127.0.0.1/runs", { method: "POST" })).status).toBe(429);
  expect(fetched).toHaveBeenCalledTimes(4);
});

test("the waiting time is announced once, as seconds or until a date", () => {
  const answer = (after: string) => new Response("", { status: 429, headers: { "retry-after": after } });
  expect(retryAfterSeconds(answer("Thu, 01 Jan 1970 00:00:09 GMT"), 2_000)).toBe(7);
  expect(retryAfterSeconds(answer("soon"))).toBeUndefined();
  expect(
    retryAfterSeconds(new Response("", { status: 413, headers: { "retry-after": "1" } })),
  ).toBeUndefined();
  expect(withRetryTime("Too many.", answer("1"))).toBe("Too many. Try again in a second.");
  expect(withRetryTime("Too many; try again in 5 seconds.", answer("5"))).toBe(
    "Too many; try again in 5 seconds.",
  );
});
