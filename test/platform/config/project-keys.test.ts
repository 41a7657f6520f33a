import { describe, expect, test } from "vitest";
import { projectKeysIn } from "../../../src/platform/config/project-keys.ts";
import { readGraphConfig } from "../../../src/graphs/project/langgraph-json.ts";
import { aFile, failure } from "../../graphs/helpers.ts";

const GRAPHS = { graphs: { agent: "./agent.ts:graph" } };

describe("keys of langgraph.json in environment variables", () => {
  test("override the file, each as a whole; those with a variable of their own override their parent key", async () => {
    const file = await aFile("langgraph.json", {
      ...GRAPHS,
      http: { mount_prefix: "/file", disable_store: true },
      checkpointer: { ttl: { default_ttl: 5 } },
      store: { ttl: { default_ttl: 7 } },
    });
    const read = await readGraphConfig(
      file,
      projectKeysIn({
        LANGGRAPH_HTTP: '{"mount_prefix": "/json", "disable_runs": true, "cors": {"max_age": 1}}',
        MOUNT_PREFIX: "/variable",
        CORS_CONFIG: '{"max_age": 5}',
        LANGGRAPH_CHECKPOINTER: '{"ttl": {"default_ttl": 9, "strategy": "keep_latest"}}',
        LANGGRAPH_STORE: "",
      }),
    );
    expect(read.http).toMatchObject({ mountPrefix: "/variable", disabled: new Set(["runs"]) });
    expect(read.http.cors?.maxAgeSeconds).toBe(5);
    expect(read.threadExpiry.defaultTtl).toEqual({ minutes: 9, strategy: "keep_latest" });
    expect(read.storeExpiry.defaultMinutes).toBe(7);
  });

  test("may set a thread's time to live as a number of minutes", async () => {
    const file = await aFile("langgraph.json", {
      ...GRAPHS,
      checkpointer: { ttl: { strategy: "keep_latest" } },
    });
    const { threadExpiry } = await readGraphConfig(file, projectKeysIn({ LANGGRAPH_THREAD_TTL: "90" }));
    expect(threadExpiry.defaultTtl).toEqual({ minutes: 90, strategy: "delete" });
  });

  test("replace the file if they name the graphs", async () => {
    const given = projectKeysIn({ LANGSERVE_GRAPHS: '{"agent": "/deps/agent.ts:graph"}' });
    const { entries } = await readGraphConfig("/nowhere/langgraph.json", given);
    expect(entries).toMatchObject([{ id: "agent", file: "/deps/agent.ts", exportName: "graph" }]);
    const error = await failure(
      readGraphConfig("/nowhere/langgraph.json", projectKeysIn({ MOUNT_PREFIX: "/x" })),
    );
    expect(error.message).toContain("There is no ");
  });

  test.each([
    [{ LANGGRAPH_HTTP: "{" }, "LANGGRAPH_HTTP must be JSON, as 'http' of langgraph.json"],
    [{ LANGGRAPH_STORE: "[]" }, "LANGGRAPH_STORE must be a JSON object, as 'store' of langgraph.json."],
    [{ LANGGRAPH_THREAD_TTL: "soon" }, "LANGGRAPH_THREAD_TTL must be JSON"],
  ])("%j is refused", (environment, message) => {
    expect(() => projectKeysIn(environment as Record<string, string>)).toThrow(message);
  });

  test.each([
    [
      { MOUNT_PREFIX: "agents" },
      "with the keys that the environment sets is not valid: http.mount_prefix: must be a path",
    ],
    [{ MOUNT_PREFIX: "/agents/" }, "http.mount_prefix: must be a path"],
    [{ LANGGRAPH_HTTP: '{"middleware_order": "x"}' }, 'http.middleware_order: must be "middleware_first"'],
  ])("in %j are validated like the file", async (environment, message) => {
    const file = await aFile("langgraph.json", GRAPHS);
    const error = await failure(readGraphConfig(file, projectKeysIn(environment as Record<string, string>)));
    expect(error.message).toContain(message);
  });

  test("that are unknown or without effect are named", async () => {
    const file = await aFile("langgraph.json", GRAPHS);
    const { warning } = await readGraphConfig(
      file,
      projectKeysIn({ LANGGRAPH_HTTP: '{"disable_thread": true}' }),
    );
    expect(warning).toBe("'http.disable_thread' is unknown; did you mean 'http.disable_threads'?");
  });
});
