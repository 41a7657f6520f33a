import { expect, test } from "vitest";
import { apiOf, saying } from "../helpers/api.ts";
import { startTestServer } from "../helpers/app.ts";
import { eventually } from "../helpers/conditions.ts";

test("graph processes report their checkpoint statements to the server, each once", async () => {
  const server = await startTestServer({ graphProcesses: 1 });
  try {
    const api = apiOf(server);
    const writes = async (): Promise<number> => {
      const text = await (await fetch(`${server.url}/metrics`)).text();
      return Number(/^threadloom_checkpoint_write_seconds_count (\d+)$/m.exec(text)?.[1]);
    };
    const thread = await api.aThread();
    await api.post(`/threads/${thread}/runs/wait`, { assistant_id: "two-step", input: saying("hello") });
    const first = await eventually("the statements are counted", async () => (await writes()) || undefined);
    expect(first).toBeLessThan(10);
    await api.post(`/threads/${thread}/runs/wait`, { assistant_id: "two-step", input: saying("again") });
    const second = await eventually("more statements are counted", async () => {
      const count = await writes();
      return count > first && count;
    });
    expect(second).toBeLessThan(20);
  } finally {
    await server.close();
  }
});
