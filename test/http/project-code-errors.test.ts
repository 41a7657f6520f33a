import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { HandlerError } from "../../src/access/auth/decisions.ts";
import { ProjectCodeError } from "../../src/platform/domain/errors.ts";
import { createLogger } from "../../src/platform/lib/logger.ts";
import { apiOf, type Api } from "../helpers/api.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { eventually } from "../helpers/conditions.ts";
import { listeningLogger } from "../helpers/parts.ts";

/** The log of errors of the project's code in requests contains their places in code, and no user text. */

let server: TestServer;
let api: Api;
beforeAll(async () => {
  server = await startTestServer({
    role: "api",
    graphConfigFile: fileURLToPath(new URL("failing-project/langgraph.json", import.meta.url)),
  });
  api = apiOf(server);
});
afterAll(() => server.close());

const lineWith = async (text: string): Promise<string> => {
  let found: string | undefined;
  await eventually(`a line with ${text}`, () => {
    found = server.lines.find((line) => line.includes(text));
    return found !== undefined;
  });
  return found ?? "";
};

test("of a handler of Auth: the classes of the error and its causes, and places in code", async () => {
  const { status } = await api.post("/assistants/search", { metadata: { name: "canary-of-handlers" } });
  expect(status).toBe(500);
  const { err } = JSON.parse(await lineWith("a request failed"));
  expect(err).toMatchObject({
    type: "HandlerError",
    message: "The handler of assistants:search failed.",
    cause: {
      type: "RangeError",
      message: expect.stringContaining("withheld"),
      stack: expect.stringContaining("failing-project/auth.ts"),
      cause: { type: "TypeError", message: expect.stringContaining("withheld") },
    },
  });
  expect(server.lines.join("")).not.toContain("canary-of-handlers");
});

test("of authenticate", async () => {
  const { status } = await fetch(`${server.url}/threads/count`, {
    method: "POST",
    headers: { authorization: "Bearer bad-canary-of-tokens" },
  });
  expect(status).toBe(401);
  const { err } = JSON.parse(await lineWith("'authenticate' threw an error"));
  expect(err).toMatchObject({
    type: "SyntaxError",
    message: expect.stringContaining("withheld"),
    stack: expect.stringContaining("failing-project/auth.ts"),
  });
  expect(server.lines.join("")).not.toContain("canary-of-tokens");
});

test("of the factory of a graph", async () => {
  const threadId = await api.aThread({ metadata: { graph_id: "made" } });
  const { status, body } = await api.post<object>(`/threads/${threadId}/state`, { values: { text: "a" } });
  expect([status, body]).toEqual([
    500,
    expect.objectContaining({ detail: "The server could not answer this request; its log says why." }),
  ]);
  const { err } = JSON.parse(await lineWith("ProjectCodeError"));
  expect(err).toMatchObject({
    type: "ProjectCodeError",
    message: "The graph 'made' could not be built.",
    cause: {
      type: "RangeError",
      message: expect.stringContaining("withheld"),
      stack: expect.stringContaining("failing-project/graph.ts"),
    },
  });
  expect(server.lines.join("")).not.toContain("a-canary-of-factories");
});

const logged = (contents: boolean, err: Error): string => {
  const lines: string[] = [];
  createLogger({ level: "trace", contents, destination: { write: (line) => void lines.push(line) } }).error(
    { err },
    "a request failed",
  );
  return lines.join("");
};

test.each([
  new HandlerError("The handler failed.", { cause: new Error("a canary") }),
  new ProjectCodeError("The graph could not be built.", { cause: new Error("a canary") }),
  new Error("Ours.", { cause: new HandlerError("The handler failed.", { cause: new Error("a canary") }) }),
])("$message has its cause in the log if the log has contents", (error) => {
  expect(logged(true, error)).toContain("a canary");
  expect(logged(false, error)).not.toContain("a canary");
  expect(logged(false, error)).toContain(error.message);
});

test("errors of the server and of the database are logged unchanged, with their causes", () => {
  const { logger, lines } = listeningLogger();
  logger.error({ err: new Error("ours", { cause: new Error("of the database") }) }, "a request failed");
  expect(JSON.parse(lines.join("")).err).toMatchObject({
    message: "ours",
    cause: { message: "of the database" },
  });
});
