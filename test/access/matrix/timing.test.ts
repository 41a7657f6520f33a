import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { send } from "./cells.ts";
import { RUN } from "./requests.ts";

/**
 * Measures how long a 404 takes for another user's record and for a missing one. The times are printed, not asserted, because a busy
 * machine would break an assertion. `TIMED_ROUNDS=2000 npx vitest run test/access/matrix/timing.test.ts` measures.
 */

const ROUNDS = Number(process.env["TIMED_ROUNDS"] ?? 20);
let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({
    graphConfigFile: fileURLToPath(new URL("./langgraph.json", import.meta.url)),
    readsPerMinute: 0,
    searchesPerMinute: 0,
    writesPerMinute: 0,
    runsPerMinute: 0,
    streamsPerMinute: 0,
  });
});
afterAll(() => server.close());

const headersOf = (name: string) => ({ authorization: `Bearer ${name}` });
const made = async (path: string, body: object): Promise<Record<string, string>> => {
  const { status, text } = await send(server.url, { method: "POST", path, body, headers: headersOf("ann") });
  expect(status).toBe(200);
  return JSON.parse(text) as Record<string, string>;
};
const median = (times: readonly number[]): number =>
  times.toSorted((a, b) => a - b)[times.length >> 1] ?? NaN;

test("the 404 for a hidden record equals the 404 for a missing one, and the test prints the time of each", async () => {
  const { thread_id: thread = "" } = await made("/threads", {});
  const { run_id: run = "" } = await made(`/threads/${thread}/runs`, RUN);
  const { assistant_id: assistant = "" } = await made("/assistants", { graph_id: "agent" });
  const { cron_id: cron = "" } = await made("/runs/crons", { ...RUN, schedule: "0 9 1 1 *" });
  const routes: [method: string, pathOf: (id: string) => string, hidden: string, body?: unknown][] = [
    ["GET", (id) => `/threads/${id}`, thread],
    ["GET", (id) => `/threads/${id}/state`, thread],
    ["GET", (id) => `/threads/${id}/stream`, thread],
    ["POST", (id) => `/threads/${id}/runs/wait`, thread, RUN],
    ["DELETE", (id) => `/threads/${id}`, thread],
    ["GET", (id) => `/threads/${thread}/runs/${id}/join`, run],
    ["GET", (id) => `/webhooks/deliveries/${id}`, run],
    ["GET", (id) => `/assistants/${id}`, assistant],
    ["GET", (id) => `/runs/crons/${id}`, cron],
    ["PATCH", (id) => `/runs/crons/${id}`, cron, { enabled: false }],
  ];
  const headers = headersOf("bob");
  for (const [method, pathOf, hidden, body] of routes) {
    const [missing, times] = [newId(), { hidden: [] as number[], missing: [] as number[] }];
    const timed = async (id: string, into: number[]): Promise<string> => {
      const before = performance.now();
      const { status, text } = await send(server.url, { method, path: pathOf(id), body, headers });
      into.push(performance.now() - before);
      return `${status} ${text.replaceAll(id, "ID")}`;
    };
    for (let round = 0; round < ROUNDS; round += 1) {
      // Alternates the order of the two.
      const first = round % 2 === 0 ? await timed(hidden, times.hidden) : undefined;
      const second = await timed(missing, times.missing);
      expect(first ?? (await timed(hidden, times.hidden))).toBe(second);
    }
    const [one, two] = [median(times.hidden), median(times.missing)];
    process.stdout.write(
      `404 of ${method} ${pathOf("ID").replace(thread, "ID")}: hidden ${one.toFixed(2)} ms, missing ${two.toFixed(2)} ms, ` +
        `ratio ${(one / two).toFixed(3)}\n`,
    );
  }
}, 600_000);
