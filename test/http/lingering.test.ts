import { Client } from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, expect, test } from "vitest";
import { bodyOf, jsonValue, optional } from "../../src/platform/domain/json-schemas.ts";
import { aBareApp } from "../helpers/parts.ts";

/** The answer to clients whose body is too large, while they still send it. */

const MEGABYTE = 1024 * 1024;
const BODY_LIMIT = MEGABYTE;
/** Far more than the buffers at both ends of a connection. */
const SENT_BYTES = 128 * MEGABYTE;
const SENTENCE = "The body is larger than 1.05 MB, the most that this route takes.";

let url: string;
let stop: () => Promise<void>;
beforeAll(async () => {
  const { app } = await aBareApp({
    bodyLimit: BODY_LIMIT,
    routes: [
      async (routes) => {
        routes.post(
          "/runs",
          { config: { largeBody: true }, schema: { body: bodyOf({ input: optional(jsonValue) }) } },
          async () => ({}),
        );
      },
    ],
  });
  url = await app.listen({ host: "127.0.0.1", port: 0 });
  stop = async () => await app.close();
});
afterAll(async () => {
  await stop();
});

const chunk = Buffer.alloc(MEGABYTE, "x");

test("fetch reads the error, announced or not, and reuses its connections", async () => {
  const text = `{"input":"${"x".repeat(SENT_BYTES)}"}`;
  const announced = await fetch(`${url}/runs`, { method: "POST", body: text });
  expect([announced.status, await announced.json()]).toEqual([413, { detail: SENTENCE }]);
  let left = SENT_BYTES / MEGABYTE;
  const body = new ReadableStream({
    pull(controller) {
      if (left-- > 0) controller.enqueue(chunk);
      else controller.close();
    },
  });
  const request = { method: "POST", body, duplex: "half" };
  const unannounced = await fetch(`${url}/runs`, request as RequestInit);
  expect([unannounced.status, await unannounced.json()]).toEqual([413, { detail: SENTENCE }]);
  expect((await fetch(`${url}/runs`, { method: "POST", body: "{}" })).status).toBe(200);
});

test("the official client shows the error", async () => {
  const client = new Client({ apiUrl: url, callerOptions: { maxRetries: 0 } });
  const run = client.runs.create(null as unknown as string, "agent", {
    input: { text: "x".repeat(SENT_BYTES) },
  });
  await expect(run).rejects.toThrow(SENTENCE);
});
