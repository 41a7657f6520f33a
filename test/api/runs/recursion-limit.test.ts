import { describe, expect, test } from "vitest";
import type { Api, Refusal } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { query } from "../../helpers/query.ts";
import { onServer } from "../../helpers/servers.ts";

let server: TestServer;
let api: Api;
onServer({ recursionLimitMax: 4 }, (opened) => ({ server, api } = opened));

const config = (recursion_limit: number) => ({ config: { recursion_limit } });

describe("a recursion_limit above the server's maximum", () => {
  test("is refused wherever a run or an assistant names it, and nothing is stored", async () => {
    const threadId = await api.aThread();
    const run = { assistant_id: "counter", input: {}, ...config(5) };
    const refused = [
      await api.post<Refusal>(`/threads/${threadId}/runs`, run),
      await api.post<Refusal>(`/threads/${threadId}/runs/stream`, run),
      await api.post<Refusal>("/runs/wait", { ...run, config: { recursion_limit: 1_000_000_000 } }),
      await api.post<Refusal>("/runs/batch", [{ ...run, ...config(4) }, run]),
      await api.post<Refusal>("/assistants", { graph_id: "counter", name: "endless", ...config(5) }),
      await api.patch<Refusal>("/assistants/counter", config(5)),
    ];
    for (const { status, body } of refused) {
      expect(status).toBe(422);
      expect(body.detail).toMatch(/^'config\.recursion_limit': must be at most 4\./);
    }
    expect(await query(server, "select 1 from threadloom.runs")).toEqual([]);
    expect(
      await query(server, "select 1 from threadloom.assistants where name = 'endless' or version > 1"),
    ).toEqual([]);
    expect((await api.aFinishedRun(threadId, { ...run, ...config(4) }))["count"]).toBe(1);
  });

  test("that was stored before is reduced to it", async () => {
    await query(server, "update threadloom.assistants set config = $1 where graph_id = 'ten-steps'", [
      config(1_000).config,
    ]);
    const result = await api.aFinishedRun(await api.aThread(), { assistant_id: "ten-steps", input: {} });
    expect(result.__error__?.message).toContain("Recursion limit of 4 reached");
  });
});
