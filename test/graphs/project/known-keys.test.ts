import { describe, expect, it } from "vitest";
import { keyWarning, reviewKeys } from "../../../src/graphs/project/known-keys.ts";
import { readGraphConfig } from "../../../src/graphs/project/langgraph-json.ts";
import { aFile, failure } from "../helpers.ts";

const GRAPHS = { graphs: { agent: "./agent.ts:graph" } };
const warningOf = (more: Record<string, unknown>) => keyWarning(reviewKeys({ ...GRAPHS, ...more }));

describe("the keys of langgraph.json", () => {
  it("need no warning if they have an effect", () => {
    expect(
      warningOf({
        $schema: "https://langgra.ph/schema.json",
        env: ".env",
        graphs: { agent: { path: "./agent.ts:graph", description: "Helps." } },
        store: {
          index: { embed: "a:b", dims: 3, fields: ["$"] },
          ttl: { default_ttl: 3, refresh_on_read: true },
        },
        checkpointer: { ttl: { strategy: "delete", default_ttl: 3, sweep_limit: 9 } },
        http: { disable_mcp: true, disable_store: false, app: null },
        auth: null,
      }),
    ).toBeUndefined();
  });

  it("that describe the build of an image are listed apart from those that deserve a warning", () => {
    const file = {
      ...GRAPHS,
      dependencies: ["."],
      node_version: "20",
      pip_config_file: "x",
      base_image: "y",
    };
    expect(reviewKeys(file).forImages).toEqual([
      "dependencies",
      "node_version",
      "pip_config_file",
      "base_image",
    ]);
    expect(keyWarning(reviewKeys(file))).toBeUndefined();
  });

  it.each([
    [{ atuh: { path: "./auth.ts:auth" } }, "'atuh' is unknown; did you mean 'auth'?"],
    [{ Auth: { path: "./auth.ts:auth" } }, "'Auth' is unknown; did you mean 'auth'?"],
    [{ oauth: "./auth.mjs" }, "'oauth' is unknown; did you mean 'auth'?"],
    [{ authentication: { path: "./auth.py:auth" } }, "'authentication' is unknown; did you mean 'auth'?"],
    [{ auth: {}, aut: { path: "./auth.ts:auth" } }, "'aut' is unknown; did you mean 'auth'?"],
    [{ auth: { pth: "./auth.ts:auth" } }, "'auth.pth' is unknown; did you mean 'auth.path'?"],
  ])("a misspelt auth prevents an open server: %j", async (more, sentence) => {
    const { message } = await failure(readGraphConfig(await aFile("langgraph.json", { ...GRAPHS, ...more })));
    expect(message).toContain(`langgraph.json: ${sentence} The server refuses to start`);
  });

  it.each([
    [{ author: { name: "Ada", url: "https://example.com" } }],
    [{ author: "Ada" }],
    [{ path: "./anything" }],
    [{ auth: { path: "./auth.ts:auth" }, authz: { path: "./other.ts:auth" } }],
    [{ auth: { disable_studio_auth: true } }],
    [{ something_else: { path: "./auth.ts:auth" } }],
  ])("a key that can't be a misspelt auth prevents no start: %j", async (more) => {
    const file = await aFile("langgraph.json", { ...GRAPHS, ...more });
    expect((await readGraphConfig(file)).entries).toHaveLength(1);
  });

  it.each([
    [
      { store: { path: "./store.ts:store" } },
      "'store.path' has no effect here (this server keeps the store)",
    ],
    [{ atuh: true }, "'atuh' is unknown; did you mean 'auth'?"],
    [
      { webhooks: { env_prefx: "X" } },
      "'webhooks.env_prefx' is unknown; did you mean 'webhooks.env_prefix'?",
    ],
    [
      { http: { app: "./app.ts:app", cors: { allow_origin: ["*"] }, disable_store: true } },
      "'http.cors.allow_origin' is unknown; did you mean 'http.cors.allow_origins'?",
    ],
    [{ grahps: {} }, "'grahps' is unknown; did you mean 'graphs'?"],
    [{ checkpointer: { tttl: {} } }, "'checkpointer.tttl' is unknown; did you mean 'checkpointer.ttl'?"],
    [
      { store: { ttl: { defaultTtl: 3 } } },
      "'store.ttl.defaultTtl' is unknown; did you mean 'store.ttl.default_ttl'?",
    ],
    [
      { graphs: { agent: { path: "a:b", descripton: "Helps." } } },
      "'graphs.agent.descripton' is unknown; did you mean 'graphs.agent.description'?",
    ],
    [{ quite_another_thing: 1 }, "'quite_another_thing' is unknown"],
    [{ constructor: 1, toString: 2 }, "'constructor' is unknown; 'toString' is unknown"],
  ])("%j is named", (more, warning) => {
    expect(warningOf(more)).toBe(warning);
  });

  it.each([["./auth.ts:auth"], [{ path: "" }], [{ path: "./auth.ts:auth", cache: {} }]])(
    "the auth %j is refused",
    async (auth) => {
      const file = await aFile("langgraph.json", { ...GRAPHS, auth });
      expect((await failure(readGraphConfig(file))).message).toContain("auth");
    },
  );

  it.each([[null], [{}], [{ disable_studio_auth: true }], [undefined]])(
    "the auth %j names no handlers",
    async (auth) => {
      const file = await aFile("langgraph.json", { ...GRAPHS, auth });
      expect((await readGraphConfig(file)).auth).toBeUndefined();
    },
  );

  it("are named, too, if a misspelt one leaves the file without graphs", async () => {
    const file = await aFile("langgraph.json", { grahps: { agent: "./agent.ts:graph" } });
    const { message } = await failure(readGraphConfig(file));
    expect(message).toContain("graphs: must be an object like");
    expect(message).toContain("'grahps' is unknown; did you mean 'graphs'.");
  });
});
