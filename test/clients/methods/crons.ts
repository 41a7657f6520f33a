import { expect } from "vitest";
import type { Client } from "@langchain/langgraph-sdk";
import { aThread, HELLO, refusalOf, type Calls } from "./calls.ts";

/** Once a year, so none fires while the tests run, except at new year. */
const YEARLY = { schedule: "0 0 1 1 *", timezone: "Europe/Berlin", input: HELLO };
const aCron = (client: Client, mark?: string) =>
  client.crons.create("two-step", { ...YEARLY, metadata: { mark } });

export const CRON_CALLS: Calls = {
  "crons.createForThread": async (client) => {
    const threadId = await aThread(client);
    const cron = await client.crons.createForThread(threadId, "two-step", YEARLY);
    expect(cron).toMatchObject({ thread_id: threadId, schedule: YEARLY.schedule });
    await client.crons.delete(cron.cron_id);
  },
  "crons.create": async (client) => {
    const cron = await aCron(client);
    expect(cron).toMatchObject({ schedule: YEARLY.schedule, enabled: true });
    const wrong = { ...YEARLY, schedule: "every day" };
    expect(await refusalOf(client.crons.create("two-step", wrong))).toBe(422);
    await client.crons.delete(cron.cron_id);
  },
  "crons.update": async (client) => {
    const { cron_id: id } = await aCron(client);
    const updated = await client.crons.update(id, { schedule: "0 0 2 1 *", enabled: false });
    expect(updated).toMatchObject({ cron_id: id, schedule: "0 0 2 1 *", enabled: false });
    await client.crons.delete(id);
  },
  "crons.delete": async (client) => {
    const mark = crypto.randomUUID();
    const { cron_id: id } = await aCron(client, mark);
    await client.crons.delete(id);
    expect(await client.crons.search({ metadata: { mark } } as object)).toEqual([]);
    expect(await refusalOf(client.crons.delete(id))).toBe(404);
  },
  "crons.search": async (client) => {
    const threadId = await aThread(client);
    const { cron_id: id } = await client.crons.createForThread(threadId, "two-step", YEARLY);
    const found = await client.crons.search({ threadId, limit: 5, sortBy: "next_run_date" });
    expect(found).toMatchObject([{ cron_id: id, thread_id: threadId, payload: { input: HELLO } }]);
    expect(found[0]!.next_run_date).toMatch(/^\d{4}-/);
    await client.crons.delete(id);
  },
  "crons.count": async (client) => {
    const threadId = await aThread(client);
    const { cron_id: id } = await client.crons.createForThread(threadId, "two-step", YEARLY);
    expect(await client.crons.count({ threadId })).toBe(1);
    await client.crons.delete(id);
  },
};
