import { randomUUID } from "node:crypto";
import { expect, it } from "vitest";
import type { apiOf } from "../helpers/api.ts";
import type { Refusal } from "../helpers/api.ts";
import { onServer } from "../helpers/servers.ts";

let api: ReturnType<typeof apiOf>;
onServer({}, (opened) => ({ api } = opened));

const wide = { tags: Array.from({ length: 10_000 }, (_, index) => index) };
let deep: Record<string, unknown> = {};
for (let depth = 0; depth < 200; depth += 1) deep = { deep };

it.each([
  ["values", "/threads/search"],
  ["metadata", "/threads/search"],
  ["values", "/threads/count"],
  ["metadata", "/threads/count"],
  ["metadata", `/threads/${randomUUID()}/history`],
  ["metadata", "/assistants/search"],
  ["metadata", "/assistants/count"],
  ["metadata", `/assistants/${randomUUID()}/versions`],
  ["filter", "/store/items/search"],
])("refuses %s with 10,000 values, or 200 levels, in %s, before any comparison", async (field, path) => {
  for (const filter of [wide, deep]) {
    const { status, body } = await api.post<Refusal>(path, { [field]: filter });
    expect([status, body.detail]).toEqual([422, expect.stringContaining(`'${field}'`)]);
    expect(body.detail).toContain("1000 keys and values");
  }
});

it("counts threads by their ids, like a search", async () => {
  const [one, another] = [await api.aThread(), await api.aThread()];
  await api.aThread();
  const ids = [one, another, randomUUID()];
  expect((await api.post("/threads/count", { ids })).body).toBe(2);
  expect((await api.post("/threads/count", { ids: [] })).body).toBe(0);
  expect((await api.post<unknown[]>("/threads/search", { ids })).body).toHaveLength(2);
});

it("accepts a filter with a thousand values", async () => {
  const thread = await api.aThread({ metadata: { tags: wide.tags.slice(0, 1_900) } });
  const found = await api.post<{ thread_id: string }[]>("/threads/search", {
    metadata: { tags: wide.tags.slice(1_001, 1_900) },
  });
  expect(found.body.map(({ thread_id }) => thread_id)).toEqual([thread]);
});
