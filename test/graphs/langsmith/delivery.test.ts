import { expect, test } from "vitest";
import { createTraceDelivery, type Fetch } from "../../../src/graphs/langsmith-delivery.ts";
import { eventually } from "../../helpers/conditions.ts";
import { listeningLogger } from "../../helpers/parts.ts";

const MULTIPART = "https://traces.example/runs/multipart";
const BATCH = "https://traces.example/runs/batch";
const INFO = "https://traces.example/info";

/** A delivery to an endpoint that answers one after the other; the last answer repeats. */
const deliveryTo = (...answers: (number | Error | "nothing")[]) => {
  const bodies: string[] = [];
  const send: Fetch = async (_input, init) => {
    bodies.push(await new Response(init?.body).text());
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    if (answer === "nothing") return await new Promise<Response>(() => undefined);
    if (answer instanceof Error) throw answer;
    return new Response(answer === 204 ? null : "text", { status: answer ?? 200 });
  };
  const { logger, lines } = listeningLogger();
  const delivery = createTraceDelivery(logger, { send, pausesMs: [0, 0] });
  const post = async (url = MULTIPART, body: NonNullable<RequestInit["body"]> = "traces"): Promise<number> =>
    (await delivery.fetch(url, { method: "POST", body })).status;
  return { delivery, post, bodies, lines };
};

test("a batch is sent again after a fault that may pass, also one that came as a stream", async () => {
  const { post, bodies, lines } = deliveryTo(new TypeError("fetch failed"), 503, 202);
  expect(await post(MULTIPART, new Response("streamed").body!)).toBe(202);
  expect(bodies).toEqual(["streamed", "streamed", "streamed"]);
  expect(lines).toEqual([]);
});

test.each([
  ["is down", 503, 3],
  ["can't be reached", new TypeError("fetch failed"), 3],
  ["refuses the key", 403, 1],
  ["answers too late", Object.assign(new Error("late"), { name: "TimeoutError" }), 1],
])("batches for an endpoint that %s are dropped, with one line in the log", async (_how, answer, tries) => {
  const { post, bodies, lines } = deliveryTo(answer);
  for (let count = 0; count < 10; count += 1) expect(await post()).toBe(202);
  expect(bodies).toHaveLength(10 * tries);
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0]!)).toMatchObject({
    level: 40,
    batches: 1,
    msg: "traces could not be sent to LangSmith",
  });
});

test("the client hears that an endpoint has no multipart, but not that it has no batches", async () => {
  const { post, lines } = deliveryTo(404);
  expect(await post(MULTIPART)).toBe(404);
  expect(lines).toEqual([]);
  expect(await post(BATCH)).toBe(202);
  expect(lines).toHaveLength(1);
});

test("batches beyond 32 MiB that wait for answers are dropped", async () => {
  const { post, bodies, lines } = deliveryTo("nothing");
  const large = "x".repeat(10 * 1024 * 1024);
  for (let count = 0; count < 3; count += 1) void post(MULTIPART, large);
  await eventually("three are sent", () => bodies.length === 3);
  expect(await post(MULTIPART, large)).toBe(202);
  expect(bodies).toHaveLength(3);
  expect(lines.join()).toContain("Too many traces wait for the endpoint.");
});

test("batches beyond the hundredth that waits are dropped, until others have their answers", async () => {
  const { post, bodies, lines } = deliveryTo(...Array.from({ length: 100 }, () => "nothing" as const), 202);
  for (let count = 0; count < 100; count += 1) void post();
  await eventually("a hundred are sent", () => bodies.length === 100);
  expect(await post()).toBe(202);
  expect([bodies.length, lines.length]).toEqual([100, 1]);

  const freed = deliveryTo(202);
  for (let count = 0; count < 200; count += 1) await freed.post();
  expect([freed.bodies.length, freed.lines.length]).toEqual([200, 0]);
});

test("a delivery that closes tries each batch once", async () => {
  const { delivery, post, bodies, lines } = deliveryTo(503);
  delivery.close();
  await post();
  expect([bodies.length, lines.length]).toEqual([1, 1]);
});

test("an endpoint that does not say what it offers counts as one with the defaults", async () => {
  const { delivery, lines } = deliveryTo(new TypeError("fetch failed"));
  expect(await (await delivery.fetch(INFO, { method: "GET" })).json()).toEqual({});
  expect(lines).toEqual([]);
});

test("other requests of the client pass, and fail", async () => {
  const { delivery } = deliveryTo(500, new TypeError("fetch failed"));
  expect((await delivery.fetch("https://traces.example/prompts", { method: "GET" })).status).toBe(500);
  await expect(delivery.fetch("https://traces.example/prompts")).rejects.toThrow("fetch failed");
});
