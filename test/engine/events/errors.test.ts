import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { dataOf, readStream, type SentEvent } from "../../helpers/server-sent-events.ts";
import { onServer } from "../../helpers/servers.ts";

let server: TestServer;
let api: Api;
const graphConfigFile = fileURLToPath(new URL("./graphs/langgraph.json", import.meta.url));
onServer({ graphConfigFile }, (opened) => ({ server, api } = opened));

const streamed = async (how: string, stream_mode: string[]): Promise<SentEvent[]> =>
  await readStream(`${server.url}/threads/${await api.aThread()}/runs/stream`, {
    body: {
      assistant_id: "breaking-nested",
      input: { how, count: 0, bytes: 0 },
      stream_mode,
      stream_subgraphs: true,
    },
  });
const framesOf = (events: SentEvent[]): string => events.map(({ frame }) => frame).join("\n");
const toolErrorIn = (events: SentEvent[]): unknown =>
  events
    .map(({ data }) => data as { event?: string; error?: unknown; data?: { error?: unknown } })
    .filter(({ event }) => event === "on_tool_error")
    .map(({ error, data }) => error ?? data?.error)[0];

/** A line of a stack, or the folder of the graph. */
const PLACE = /\bat \S+ \(|breaking\.ts/;

test("an inner event of a failed tool has the error's name and message, and no stack", async () => {
  const events = await streamed("tool", ["events"]);
  expect(toolErrorIn(events)).toBe("RangeError: the tool is broken");
  expect(framesOf(events)).not.toMatch(PLACE);
});

test("no other mode shows the stack of a failed tool or node", async () => {
  const events = await streamed("tool", [
    "tools",
    "debug",
    "tasks",
    "updates",
    "values",
    "custom",
    "messages",
  ]);
  expect(toolErrorIn(events)).toEqual({ name: "RangeError", message: "the tool is broken" });
  expect(dataOf(events, "error")).toEqual([{ error: "RangeError", message: "the tool is broken" }]);
  expect(framesOf(events)).not.toMatch(PLACE);
});

test.each(["events", "tools"])("no event shows the message of a database (%s)", async (mode) => {
  const events = await streamed("database", [mode]);
  expect(JSON.stringify(toolErrorIn(events))).toContain("DatabaseError");
  expect(framesOf(events)).not.toContain("secret");
});
