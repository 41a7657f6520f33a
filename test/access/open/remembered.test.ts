import { fileURLToPath } from "node:url";
import { Client } from "@langchain/langgraph-sdk";
import { expect, test } from "vitest";
import { startTestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { openStream } from "../../helpers/server-sent-events.ts";
import { directory } from "./directory.ts";

test("a cached user (auth.cache) is authorized again while a stream is open, and dropped from the cache if refused", async () => {
  const path = `${fileURLToPath(new URL("auth.ts", import.meta.url))}:auth`;
  const server = await startTestServer({
    graphConfigFile: fileURLToPath(new URL("langgraph.json", import.meta.url)),
    projectKeys: { auth: { path, cache: { cache_keys: ["authorization"], ttl_seconds: 86_400 } } },
    accessCheckSeconds: 1,
  });
  const token = "zoe-1";
  const headers = { authorization: `Bearer ${token}` };
  try {
    const client = new Client({ apiUrl: server.url, apiKey: null, defaultHeaders: headers });
    const { thread_id: threadId } = await client.threads.create();
    await client.threads.get(threadId);
    expect(directory.shown.get(token)).toBe(1);

    const stream = await openStream(`${server.url}/threads/${threadId}/stream`, { headers });
    await eventually("two rounds of calls of the directory", () => (directory.shown.get(token) ?? 0) >= 3);
    directory.expired.add(token);
    let last = "";
    for (let event = await stream.next(); event !== undefined; event = await stream.next())
      last = event.frame;
    expect(last).toContain("The token has expired.");
    await expect(client.threads.get(threadId)).rejects.toThrow("The token has expired.");
  } finally {
    directory.expired.clear();
    await server.close();
  }
});
