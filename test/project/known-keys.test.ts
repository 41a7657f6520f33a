import { describe, expect, it } from "vitest";
import { keyWarning, reviewKeys } from "../../src/project/known-keys.ts";
import { readGraphConfig } from "../../src/project/langgraph-json.ts";
import { aFile, failure } from "../graphs/helpers.ts";

const GRAPHS = { graphs: { agent: "./agent.ts:graph" } };
const warningOf = (more: Record<string, unknown>) => keyWarning(reviewKeys({ ...GRAPHS, ...more }));

describe("the keys of langgraph.json", () => {
  it("that have an effect need no warning", () => {
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

  it.each([
    [{ image_distro: "wolfi" }, "'image_distro' (for building an image) has no effect here"],
    [
      { dependencies: ["."], node_version: "20" },
      "'dependencies', 'node_version' (for building an image) have no effect here",
    ],
    [
      { webhooks: { env_prefx: "X" } },
      "'webhooks.env_prefx' is unknown, perhaps 'webhooks.env_prefix' was meant",
    ],
    [
      { http: { app: "./app.ts:app", cors: { allow_origin: ["*"] }, disable_store: true } },
      "'http.cors.allow_origin' is unknown, perhaps 'http.cors.allow_origins' was meant",
    ],
    [{ grahps: {} }, "'grahps' is unknown, perhaps 'graphs' was meant"],
    [{ checkpointer: { tttl: {} } }, "'checkpointer.tttl' is unknown, perhaps 'checkpointer.ttl' was meant"],
    [
      { store: { ttl: { defaultTtl: 3 } } },
      "'store.ttl.defaultTtl' is unknown, perhaps 'store.ttl.default_ttl' was meant",
    ],
    [
      { graphs: { agent: { path: "a:b", descripton: "Helps." } } },
      "'graphs.agent.descripton' is unknown, perhaps 'graphs.agent.description' was meant",
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
    "no handlers are named by the auth %j",
    async (auth) => {
      const file = await aFile("langgraph.json", { ...GRAPHS, auth });
      expect((await readGraphConfig(file)).auth).toBeUndefined();
    },
  );

  it("are named, too, where a misspelt one leaves the file without graphs", async () => {
    const file = await aFile("langgraph.json", { grahps: { agent: "./agent.ts:graph" } });
    const { message } = await failure(readGraphConfig(file));
    expect(message).toContain("graphs: must be an object like");
    expect(message).toContain("'grahps' is unknown, perhaps 'graphs' was meant.");
  });
});
