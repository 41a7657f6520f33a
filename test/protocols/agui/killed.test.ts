import { randomUUID } from "node:crypto";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { apiOf } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { freshDatabase, type FreshDatabase } from "../../helpers/database.ts";
import { endLeases, PATIENT_LEASES, PATIENT_LEASES_ENVIRONMENT } from "../../helpers/leases.ts";
import { spawnServer, type ServerProcess } from "../../helpers/server-process.ts";
import { AGUI_GRAPHS, aFront, DIALECTS, ofType } from "./clients.ts";

let database: FreshDatabase;
let doomed: ServerProcess | undefined;
/** Begins after the kill: otherwise it might begin the run itself, and nothing would be killed. */
let survivor: TestServer | undefined;
beforeAll(async () => {
  database = await freshDatabase();
});
afterEach(async () => {
  await doomed?.kill();
  await survivor?.close();
});
afterAll(() => database.drop());

/** The official client leaves a rejection that nothing handles when its connection is cut. */
const openStream = async (url: string, threadId: string, graph = "stuck-once", content = "x") => {
  const answer = await fetch(`${url}/agui/${graph}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ threadId, runId: "1", messages: [{ id: "1", role: "user", content }] }),
  });
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  let text = "";
  return {
    async until(part: string, times: number): Promise<void> {
      while (text.split(part).length <= times) {
        const { done, value } = await reader.read();
        if (done) throw new Error(`The stream ended:\n${text}`);
        text += decoder.decode(value, { stream: true });
      }
    },
  };
};

const goesOn = "a run survives kill -9 of its server, and a page of %s goes on at another server";
test.each(DIALECTS)(goesOn, async (dialect) => {
  doomed = spawnServer(["--config", AGUI_GRAPHS, "--port", "0"], {
    DATABASE_URL: database.connectionString,
    ...PATIENT_LEASES_ENVIRONMENT,
  });
  const threadId = randomUUID();
  const url = await doomed.address();
  const cut = await openStream(url, threadId);
  await cut.until('"t1 "', 2);
  await eventually("the first answer is stored", async () => {
    const { values } = await apiOf({ url }).state(threadId);
    return values.messages?.length === 2;
  });
  await doomed.kill();
  await expect(cut.until("RUN_FINISHED", 1)).rejects.toThrow("terminated");

  survivor = await startTestServer({
    connectionString: database.connectionString,
    graphConfigFile: AGUI_GRAPHS,
    ...PATIENT_LEASES,
  });
  const reloaded = aFront(survivor.url, "stuck-once", { dialect, threadId });
  const joined = reloaded.run();
  await endLeases(survivor);
  const events = await joined;
  expect(events.at(-1)?.type).toBe("RUN_FINISHED");
  // The second attempt begins with the state that the first one left.
  expect(ofType(events, "STATE_SNAPSHOT").length).toBeGreaterThan(1);
  expect(reloaded.messages.map(({ content }) => content)).toEqual(["x", "t0 t1 t2 ", "t0 t1 "]);
  expect(await apiOf(survivor).runs(threadId)).toMatchObject([{ status: "success", attempts: 2 }]);
});

test.each(DIALECTS)(
  "a page of %s keeps the result of a tool that ended beside the killed one",
  async (dialect) => {
    doomed = spawnServer(["--config", AGUI_GRAPHS, "--port", "0"], {
      DATABASE_URL: database.connectionString,
      ...PATIENT_LEASES_ENVIRONMENT,
    });
    const threadId = randomUUID();
    const url = await doomed.address();
    const cut = await openStream(url, threadId, "two-tools", "stuck");
    await cut.until('"TOOL_CALL_RESULT"', 1);
    await eventually("the result is stored", async () => {
      const { values } = await apiOf({ url }).state(threadId);
      return values.messages?.length === 3;
    });
    await doomed.kill();
    await expect(cut.until("RUN_FINISHED", 1)).rejects.toThrow("terminated");

    survivor = await startTestServer({
      connectionString: database.connectionString,
      graphConfigFile: AGUI_GRAPHS,
      ...PATIENT_LEASES,
    });
    const reloaded = aFront(survivor.url, "two-tools", { dialect, threadId });
    const kept: boolean[] = [];
    const hasResult = () => reloaded.messages.some(({ content }) => content === "seen");
    const joined = reloaded.run({ onEvent: () => kept.push(hasResult()) });
    await endLeases(survivor);
    await joined;
    expect(kept.slice(kept.indexOf(true))).not.toContain(false);
    expect(reloaded.messages.map(({ content }) => content)).toEqual([
      ...["stuck", "", "seen", "not asked"],
      "used ask and look",
    ]);
    expect(await apiOf(survivor).runs(threadId)).toMatchObject([{ status: "success", attempts: 2 }]);
  },
);
