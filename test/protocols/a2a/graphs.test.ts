import { TaskState } from "@a2a-js/sdk";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { TestServer } from "../../helpers/app.ts";
import { onServer } from "../../helpers/servers.ts";
import {
  artifactOf,
  assembled,
  clientOf,
  data,
  DIALECTS,
  errorOf,
  eventsOf,
  partText,
  saying,
  sent,
  text,
} from "./clients.ts";

/** Graphs that ask several questions at once, or say several things. */

let server: TestServer;
onServer({ graphConfigFile: fileURLToPath(new URL("graphs/langgraph.json", import.meta.url)) }, (opened) => {
  server = opened.server;
});

describe.each(DIALECTS)("over %s", (dialect) => {
  const asked = async () => {
    const client = await clientOf(server, "parallel", dialect);
    const task = await sent(client, saying([text("a shirt")]));
    const parts = task.status?.message?.parts ?? [];
    const ids = new Map(parts.map((part) => [partText(part), String(part.metadata?.["interrupt_id"])]));
    return { client, task, size: ids.get("size") ?? "", colour: ids.get("colour") ?? "" };
  };

  test("several questions are parts of the status, and one message answers them by their ids", async () => {
    const { client, task, size, colour } = await asked();
    expect(task.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
    const answer = saying([data({ [size]: "L", [colour]: "red" })], { taskId: task.id });
    expect(artifactOf(await sent(client, answer))).toBe("colour: red, size: L");
  });

  test("the hosted service's form of several answers is taken, too", async () => {
    const { client, task, size, colour } = await asked();
    const resume = [
      { id: size, value: "M" },
      { id: colour, value: "blue" },
    ];
    expect(artifactOf(await sent(client, saying([data({ resume })], { taskId: task.id })))).toBe(
      "colour: blue, size: M",
    );
  });

  test("one of several questions may be answered first; the task waits for the other", async () => {
    const { client, task, size, colour } = await asked();
    const half = await sent(client, saying([data({ [size]: "L" })], { taskId: task.id }));
    expect(half).toMatchObject({ id: task.id, status: { state: TaskState.TASK_STATE_INPUT_REQUIRED } });
    expect(half.status?.message?.parts.map(partText)).toEqual(["colour"]);
    const whole = await sent(client, saying([data({ [colour]: "green" })], { taskId: task.id }));
    expect(artifactOf(whole)).toBe("colour: green, size: L");
  });

  test("an answer that names no question is refused, and the task still waits", async () => {
    const { client, task } = await asked();
    for (const part of [text("L"), data({ nowhere: "L" }), data({}), data({ constructor: "L" })])
      expect(await errorOf(client.sendMessage(saying([part], { taskId: task.id })))).toBe(
        "RequestMalformedError",
      );
    const found = await client.getTask({ tenant: "", id: task.id, historyLength: undefined });
    expect(found.status?.state).toBe(TaskState.TASK_STATE_INPUT_REQUIRED);
  });

  test("a streamed artifact is replaced by each message, and ends as the task shows it", async () => {
    const client = await clientOf(server, "talkative", dialect);
    const events = await eventsOf(client.sendMessageStream(saying([text("go")])));
    const updates = events.flatMap((event) => (event?.$case === "artifactUpdate" ? [event.value] : []));
    expect(updates.map((update) => update.append)).toEqual([
      ...[false, true, true],
      ...[false, true, true, true, true],
      ...[false, true],
    ]);
    expect(updates.map((update) => update.lastChunk).lastIndexOf(true)).toBe(updates.length - 1);
    expect(assembled(events)).toBe("In blocks.");
    const [first] = events;
    const id = first?.$case === "task" ? first.value.id : "";
    const task = await client.getTask({ tenant: "", id, historyLength: undefined });
    expect(artifactOf(task)).toBe("In blocks.");
    expect(task.history.map((message) => message.parts.map(partText).join(""))).toEqual([
      ...["go", "t0 t1 t2 ", "t0 t1 t2 t3 t4 ", "In blocks."],
    ]);
  });
});
