import { describe, expect, test } from "vitest";
import { eventually } from "../helpers/conditions.ts";
import { reasonForNoBrowser, SLOW_MS, type OpenConsole } from "./browser.ts";
import { openGate } from "./graphs/gate.ts";
import { playgroundOf } from "./playground-person.ts";
import { GRAPHS, onConsole } from "./on-console.ts";

describe.skipIf(reasonForNoBrowser() !== undefined)(
  "a run that another client started, which the playground joins late",
  { timeout: SLOW_MS },
  () => {
    let shown: OpenConsole;
    onConsole(
      {
        graphConfigFile: GRAPHS,
        context: { viewport: { width: 1280, height: 800 } },
      },
      (opened) => (shown = opened),
    );

    const { messages } = playgroundOf(() => shown);
    const passGate = (): Promise<unknown> =>
      eventually("a run waits at the gate", async () => openGate() === 1 || undefined);
    const aThread = async (): Promise<string> => {
      const { body } = await shown.server.client.post("/threads").send({});
      return (body as { thread_id: string }).thread_id;
    };
    const stateOf = async (threadId: string): Promise<string> =>
      JSON.stringify((await shown.server.client.get(`/threads/${threadId}/state`)).body);

    const STARTED = {
      "over the wire of runs": (threadId: string, input: object) =>
        shown.server.client.post(`/threads/${threadId}/runs`).send({ assistant_id: "held", input }),
      "over event streaming": (threadId: string, input: object) =>
        shown.server.client
          .post(`/threads/${threadId}/commands`)
          .send({ id: 1, method: "run.start", params: { assistant_id: "held", input } }),
    };

    test.each(Object.entries(STARTED))("is shown to its end without a reload (%s)", async (_wire, start) => {
      const { page, go } = shown;
      const threadId = await aThread();
      await start(threadId, { messages: [{ role: "user", content: "from elsewhere" }] });
      await eventually("the first step is stored", async () =>
        (await stateOf(threadId)).includes("the first answer"),
      );
      await go(`/threads/${threadId}`);
      await messages().getByText("the first answer").waitFor();
      await page.getByRole("button", { name: "Stop" }).waitFor();
      await passGate();
      await messages().getByText("the second answer").waitFor();
      expect(await messages().count()).toBe(3);
      expect(await messages().getByText("the first answer").count()).toBe(1);
      expect(shown.faults).toEqual([]);
    });
  },
);
