import { expect, test } from "vitest";
import type { Api } from "../../helpers/api.ts";
import { onServer } from "../../helpers/servers.ts";

let api: Api;
onServer({}, (opened) => (api = opened.api));

test.each<[string, unknown]>([
  ["initialize", {}],
  ["initialize", undefined],
  ["initialize", { protocolVersion: [null], capabilities: {}, clientInfo: { name: "a", version: "1" } }],
  ["tools/list", { cursor: 5 }],
])("wrong parameters of %s are the caller's mistake: %j", async (method, params) => {
  const message = { jsonrpc: "2.0", id: 7, method, params };
  const error = { code: -32602, message: `The params of '${method}' are not valid.` };
  for (const body of [message, [message, { jsonrpc: "2.0", id: 8, method: "ping" }]]) {
    const answer = await api.post("/mcp", body);
    expect([answer.status, answer.body]).toEqual([400, { jsonrpc: "2.0", id: 7, error }]);
  }
});
