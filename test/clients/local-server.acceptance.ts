import { afterAll, beforeAll, expect } from "vitest";
import { newId } from "../../src/platform/lib/ids.ts";
import { feature } from "../compatibility/feature.ts";
import { apiOf, saying } from "../helpers/api.ts";
import { namesOf, readStream } from "../helpers/server-sent-events.ts";
import { command, openFrames } from "../protocols/streaming/frames.ts";
import { startTestServer } from "../helpers/app.ts";
import { LOCAL_VERSION, startLocalServer, whyNoLocalServer, type LocalServer } from "./local-server.ts";

/** Differences from the JavaScript server that `langgraphjs dev` starts: a request to both, either answer, and the text on the page. */

const TABLE = "Beside the local JavaScript server";
const MISSING = "00000000-0000-4000-8000-000000000000";

interface Comparison {
  row: string;
  ask(url: string): Promise<unknown>;
  here: unknown;
  /** Undefined: the same. */
  there?: { answers: unknown; because: string };
}

/** Status, type and text of an answer. */
const answered = async (method: string, address: string): Promise<[number, string, string]> => {
  const response = await fetch(address, { method });
  const [type = ""] = (response.headers.get("content-type") ?? "").split(";");
  return [response.status, type, await response.text()];
};
const TOKENS = { assistant_id: "tokens", input: { ...saying("hello"), tokens: 3 } };
const withoutIds = (names: readonly string[]): string[] => [
  ...new Set(names.map((name) => name.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/, "…"))),
];

const COMPARISONS: Comparison[] = [
  {
    row: "a copy of a thread that is not there is refused with 404",
    ask: async (url) => (await answered("POST", `${url}/threads/${MISSING}/copy`))[0],
    here: 404,
    there: { answers: 409, because: "it answers 409" },
  },
  {
    row: "a 404 names the missing record in a sentence, as JSON `{detail}`",
    ask: (url) => answered("GET", `${url}/threads/${MISSING}`),
    here: [404, "application/json", JSON.stringify({ detail: `Thread '${MISSING}' not found.` })],
    there: {
      answers: [404, "text/plain", `Thread with ID ${MISSING} not found`],
      because: "its errors are plain text",
    },
  },
  {
    row: "invalid input gets a 422 with a sentence that names the field",
    ask: async (url) => {
      const [status, , text] = await answered("GET", `${url}/threads/first`);
      return [status, Object.keys(JSON.parse(text) as object)];
    },
    here: [422, ["detail"]],
    there: {
      answers: [400, ["success", "error"]],
      because: "it answers 400 with the issues that zod found, as `{success, error}`",
    },
  },
  {
    row: "a graph's own assistant is there at the start, made by `system`",
    ask: async (url) => {
      const found = await apiOf({ url }).post<{ metadata: object; version: number }[]>("/assistants/search", {
        graph_id: "tokens",
      });
      return found.body.map(({ metadata, version }) => [metadata, version]);
    },
    here: [[{ created_by: "system" }, 1]],
  },
  {
    row: "the messages of a node of the root, in a run with `stream_subgraphs`, have the namespace of their task",
    ask: async (url) => {
      const body = { ...TOKENS, stream_mode: ["messages-tuple", "updates"], stream_subgraphs: true };
      return withoutIds(namesOf(await readStream(`${url}/runs/stream`, { body })));
    },
    here: ["metadata", "messages|model:…", "updates"],
  },
  {
    row: "the messages of a node of the root, over event streaming, have the namespace of the root",
    ask: async (url) => {
      const threadId = newId();
      const frames = await openFrames(url, threadId, { channels: ["messages", "lifecycle"] });
      try {
        await command(url, threadId, "run.start", TOKENS);
        const { params } = await frames.until(({ method }) => method === "messages");
        return withoutIds(params.namespace);
      } finally {
        frames.close();
      }
    },
    here: [],
    there: {
      answers: ["model:…"],
      because: "it sends them with the namespace of their task",
    },
  },
  {
    // The last test, because afterwards the local server does not execute the graph any more.
    row: "a graph's own assistant can't be deleted",
    ask: async (url) => {
      const [deleted] = await answered("DELETE", `${url}/assistants/tokens`);
      const [found] = await answered("GET", `${url}/assistants/tokens`);
      return [deleted, found];
    },
    here: [422, 200],
    there: {
      answers: [200, 404],
      because: "it deletes the assistant, and the graph has none until the server starts again",
    },
  },
];

const reason = await whyNoLocalServer();
let here: LocalServer;
let there: LocalServer | undefined;
beforeAll(async () => {
  here = await startTestServer();
  there = reason === undefined ? await startLocalServer() : undefined;
}, 120_000);
afterAll(async () => {
  await here.close();
  await there?.close();
});

for (const { row, ask, here: ours, there: theirs } of COMPARISONS) {
  feature({ table: TABLE, row, column: "Threadloom" }, async () => {
    expect(await ask(here.url)).toEqual(ours);
  });
  feature(
    {
      table: TABLE,
      row,
      column: `local server ${LOCAL_VERSION}`,
      ...(theirs !== undefined && { differs: theirs.because }),
    },
    async (context) => {
      if (there === undefined) return context.skip(reason);
      expect(await ask(there.url)).toEqual(theirs === undefined ? ours : theirs.answers);
    },
  );
}
