import { IncomingMessage, request as httpRequest, ServerResponse, type ClientRequest } from "node:http";
import { Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createResponseBudget, type ResponseBudget } from "../../../src/http/response-budget.ts";
import { createBodyBudget } from "../../../src/http/body-budget.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";

/** One user takes as much as possible of a shared resource; another one needs little. */

const MEGABYTE = 1_000_000;
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    graphConfigFile: fileURLToPath(new URL("../../access/open/langgraph.json", import.meta.url)),
    bodyLimitBytes: MEGABYTE,
  });
});
afterAll(async () => {
  await server.close();
});
const requests: ClientRequest[] = [];
afterEach(() => {
  for (const request of requests.splice(0)) request.destroy();
});

const by = (name: string) => ({ authorization: `Bearer ${name}-1`, "content-type": "application/json" });
const send = async (name: string, bytes: number): Promise<Response> =>
  await fetch(`${server.url}/threads`, {
    method: "POST",
    headers: by(name),
    body: JSON.stringify({ metadata: { text: "x".repeat(bytes) } }),
  });

interface Unfinished {
  status?: number;
  retryAfter?: string | undefined;
}

/** Sends a body of nearly a megabyte without its end. */
const sendUnfinished = (name: string): Unfinished => {
  const seen: Unfinished = {};
  const request = httpRequest(
    `${server.url}/threads`,
    { method: "POST", headers: { ...by(name), "content-length": MEGABYTE } },
    (answer) => {
      answer.resume();
      seen.status = answer.statusCode ?? 0;
      seen.retryAfter = answer.headers["retry-after"];
    },
  );
  request.on("error", () => undefined);
  requests.push(request);
  request.write("x".repeat(0.99 * MEGABYTE));
  return seen;
};

describe("unfinished bodies of one user", () => {
  test("are refused beyond the user's share, and do not stop others from sending", async () => {
    const sent = Array.from({ length: 5 }, () => sendUnfinished("bob"));
    await eventually(
      "all but one are refused",
      () => sent.filter(({ status }) => status === 429).length === 4,
    );
    for (const { status, retryAfter } of sent) if (status === 429) expect(retryAfter).toMatch(/^\d+$/);
    expect((await send("alice", 0.9 * MEGABYTE)).status).toBe(200);
    expect((await send("bob", 0.9 * MEGABYTE)).status).toBe(429);
    expect((await send("bob", 1_000)).status).toBe(200);

    for (const request of requests.splice(0)) request.destroy();
    await eventually("he may send again", async () => (await send("bob", 0.9 * MEGABYTE)).status === 200);
  });

  test("count for a key with its factor, and are not counted for callers without a name", () => {
    const budget = createBodyBudget(4 * MEGABYTE, MEGABYTE);
    const key = budget.open({ name: "key:a", times: 2 });
    expect(key.grow(2 * MEGABYTE)).toBe("taken");
    expect(key.grow(1)).toBe("share spent");
    const anybody = budget.open();
    expect(anybody.grow(2 * MEGABYTE)).toBe("taken");
    expect(budget.open({ name: "user:ann", times: 1 }).grow(MEGABYTE)).toBe("budget spent");
    key.release();
    expect(key.grow(2 * MEGABYTE)).toBe("taken");
  });
});

describe("large answers that one user does not read", () => {
  const reserve = (room: ResponseBudget, response: ServerResponse, bytes: number) => {
    const seen: { is?: "there" | "refused" } = {};
    room.reserve(response, bytes, { isRefusable: true }).then(
      () => (seen.is = "there"),
      () => (seen.is = "refused"),
    );
    return seen;
  };
  const responseOf = (room: ResponseBudget, name: string): ServerResponse => {
    const response = new ServerResponse(new IncomingMessage(new Socket()));
    room.belongsTo(response, () => ({ name, times: 1 }));
    return response;
  };
  const settled = async (): Promise<void> => await new Promise((resolve) => setImmediate(resolve));

  test("take at most half of the room, and later callers do not wait for them", async () => {
    const room = createResponseBudget({ bytesAtMost: 1_000 });
    const own = Array.from({ length: 12 }, () => reserve(room, responseOf(room, "bob"), 100));
    const hers = reserve(room, responseOf(room, "ann"), 20);
    await settled();
    expect(own.filter(({ is }) => is === "there").length).toBe(1);
    expect(hers.is).toBe("there");
    expect(room.send(responseOf(room, "bob"), 200, { isRefusable: true })).toBe(false);
    expect(room.send(responseOf(room, "ann"), 200, { isRefusable: true })).toBe(true);
  });

  test("leave their room to callers in turns", async () => {
    const room = createResponseBudget({ bytesAtMost: 1_000 });
    const full = ["carl", "dora"].map((name) => {
      const response = responseOf(room, name);
      reserve(room, response, 500);
      return response;
    });
    const [his, his2] = [1, 2].map(() => reserve(room, responseOf(room, "bob"), 125));
    const hers = reserve(room, responseOf(room, "ann"), 125);
    await settled();
    expect([his?.is, his2?.is, hers.is]).toEqual([undefined, undefined, undefined]);
    for (const response of full) response.emit("close");
    await settled();
    expect([his?.is, his2?.is, hers.is]).toEqual(["there", undefined, "there"]);
  });
});
