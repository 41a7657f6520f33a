import { expect, test } from "vitest";
import { apiOf, saying } from "../helpers/api.ts";
import { startTestServer } from "../helpers/app.ts";
import { TEST_KEYS } from "../helpers/encryption.ts";
import { eventually } from "../helpers/conditions.ts";
import { query } from "../helpers/query.ts";
import { startReceiver } from "./receiver.ts";

test("where what is stored is encrypted, the outbox is, too, and the receiver reads all of it", async () => {
  const receiver = await startReceiver();
  const server = await startTestServer({
    encryptionKeys: TEST_KEYS,
    projectKeys: { webhooks: { url: { disable_loopback: false } } },
  });
  try {
    const api = apiOf(server);
    const canary = "canary-9f3e";
    for (const assistant_id of ["counter", "failing"]) {
      const fields = { assistant_id, input: saying(canary), context: { said: canary } };
      await api.aRun(await api.aThread(), { ...fields, webhook: receiver.url });
    }
    await eventually("both are told", () => receiver.received.length === 2);
    const [stored] = await query<{ text: string }>(
      server,
      "select string_agg(d::text || encode(coalesce(final_values, ''), 'escape'), '') as text from threadloom.webhook_deliveries d",
    );
    expect(stored?.text).not.toContain(canary);
    const payloads = receiver.payloads();
    for (const payload of payloads) {
      expect(payload).toMatchObject({ kwargs: { input: saying(canary), context: { said: canary } } });
      expect(JSON.stringify(payload["values"])).toContain(canary);
    }
    const failed = payloads.find((payload) => payload["status"] === "error");
    expect(failed).toMatchObject({ error: { error: expect.any(String), message: expect.any(String) } });
  } finally {
    await server.close();
    await receiver.close();
  }
});
