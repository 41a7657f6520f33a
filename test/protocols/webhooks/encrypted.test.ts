import { hostname } from "node:os";
import { expect, test } from "vitest";
import { apiOf, saying } from "../../helpers/api.ts";
import { startTestServer } from "../../helpers/app.ts";
import { TEST_KEYS } from "../../helpers/encryption.ts";
import { eventually } from "../../helpers/conditions.ts";
import { query } from "../../helpers/query.ts";
import { startReceiver } from "./receiver.ts";

test("with encryption, the outbox is encrypted, too, and the receiver reads all of it", async () => {
  const receiver = await startReceiver();
  const server = await startTestServer({
    encryptionKeys: TEST_KEYS,
    projectKeys: { webhooks: { url: { disable_loopback: false } } },
  });
  try {
    const api = apiOf(server);
    const canary = "canary-9f3e";
    const webhooks = [
      `${receiver.url}/hook?token=${canary}`,
      `${receiver.url}/other/${canary}`,
      `/${canary}`,
    ];
    for (const [index, assistant_id] of ["counter", "failing", "counter"].entries()) {
      const fields = { assistant_id, input: saying(canary), context: { said: canary } };
      await api.aRun(await api.aThread(), { ...fields, webhook: webhooks[index] });
    }
    await eventually("both are received", () => receiver.received.length === 2);
    expect(receiver.received.map(({ path }) => path).sort()).toEqual([
      `/hook?token=${canary}`,
      `/other/${canary}`,
    ]);
    const shown = await eventually("all runs have ended", async () => {
      const { body } = await api.post<{ url: string }[]>("/webhooks/deliveries/search", {});
      return body.length === webhooks.length ? body : undefined;
    });
    expect(shown.map(({ url }) => url).sort()).toEqual([...webhooks].sort());
    const receivers = await query<{ receiver: string }>(
      server,
      "select receiver from threadloom.deliveries order by run_id",
    );
    const [first] = receivers;
    // Deliveries to one host share its places; those to this server's own routes are recognised without the key.
    expect(receivers).toEqual([first, first, { receiver: "" }]);
    expect(first?.receiver).toMatch(/^[0-9a-f]{32}$/);
    const [stored] = await query<{ text: string }>(
      server,
      "select string_agg(d::text || encode(coalesce(final_values, ''), 'escape'), '') as text from threadloom.deliveries d",
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

test("the reason of a failed try, which may name the host, is stored encrypted and shown", async () => {
  const server = await startTestServer({
    encryptionKeys: TEST_KEYS,
    projectKeys: { webhooks: { url: { disable_private_ips: false } } },
  });
  try {
    const api = apiOf(server);
    // The address has no listener, or is refused: both reasons are shown.
    const { run_id: runId } = await api.aRun(await api.aThread(), {
      assistant_id: "counter",
      input: saying("hello"),
      webhook: `http://${hostname()}:9/hook`,
    });
    const path = `/webhooks/deliveries/${runId}`;
    const error = await eventually("it has failed", async () => {
      const { body } = await api.get<{ last_error: string | null }>(path);
      return body.last_error ?? undefined;
    });
    expect(error).toMatch(/\.$/);
    const [row] = await query<{ last_error: string; url: string }>(
      server,
      "select last_error, url from threadloom.deliveries",
    );
    expect(row?.last_error).toMatch(/^enc1:/);
    expect(row?.url).toMatch(/^enc1:/);
  } finally {
    await server.close();
  }
});
