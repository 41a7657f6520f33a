import { Client } from "sdk-1.15";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isSelected } from "../../../src/engine/events/selection.ts";
import { apiOf, saying, type Api } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { namesOf, openStream, readStream } from "../../helpers/server-sent-events.ts";

describe("a namespace", () => {
  test.each([
    ["updates", [""], true],
    ["updates|research:1", [""], false],
    ["updates|research:1", ["research:1"], true],
    ["updates|research:1", ["research"], true],
    ["updates|research:1", ["research:2", "resea", "research:"], false],
    ["updates|research:1|read:2", ["research:1"], false],
    ["updates|research:1|read:2", ["research:1|read:2"], true],
    ["updates|research:1|read:2", ["research|read"], true],
    ["updates", ["research"], false],
    ["messages/partial", [""], true],
    ["metadata", ["research"], true],
    ["error", ["research"], true],
    ["updates", [], false],
  ])("of the event %s is among %j: %s", (event, namespaces, expected) => {
    expect(isSelected(event, { namespaces })).toBe(expected);
  });

  test("and a mode must both be requested", () => {
    const selection = { modes: new Set(["updates"]), namespaces: [""] };
    expect(["updates", "values", "updates|a:1"].map((event) => isSelected(event, selection))).toEqual([
      true,
      false,
      false,
    ]);
  });
});

describe("a stream of some namespaces", () => {
  let server: TestServer;
  let api: Api;
  beforeAll(async () => {
    server = await startTestServer();
    api = apiOf(server);
  });
  afterAll(() => server.close());

  const RESEARCH = {
    assistant_id: "research",
    input: saying("cats"),
    stream_mode: ["updates", "tasks"],
    stream_subgraphs: true,
    stream_resumable: true,
  };
  const inBrief = (names: string[]) => new Set(names.map((name) => name.replace(/:[0-9a-f-]{36}/g, "")));
  const path = async (query: string) =>
    `${server.url}/threads/${await api.aThread()}/runs/stream${query && `?${query}`}`;

  test.each([
    ["", ["metadata", "updates", "tasks", "updates|investigate", "tasks|investigate"]],
    ["namespace=", ["metadata", "updates", "tasks"]],
    ["namespace=investigate", ["metadata", "updates|investigate", "tasks|investigate"]],
    [
      "namespace=&namespace=investigate",
      ["metadata", "updates", "tasks", "updates|investigate", "tasks|investigate"],
    ],
    [`namespace=${encodeURIComponent('["no-such-node"]')}`, ["metadata"]],
  ])("shows only them, with a run that is created (%s)", async (query, expected) => {
    const events = await readStream(await path(query), { body: RESEARCH });
    expect(inBrief(namesOf(events))).toEqual(new Set(expected));
  });

  test("shows a joining reader only one task's events, also after it reconnects", async () => {
    const threadId = await api.aThread();
    const run = await api.aRun(threadId, RESEARCH);
    await api.join(threadId, run.run_id);
    const address = `/threads/${threadId}/runs/${run.run_id}/stream`;
    const all = await readStream(`${server.url}${address}`, { headers: { "last-event-id": "-1" } });
    const wanted =
      namesOf(all)
        .find((name) => name.startsWith("tasks|"))
        ?.slice("tasks|".length) ?? "";
    const query = new URLSearchParams({ stream_mode: "tasks", namespace: wanted }).toString();
    const stream = await openStream(`${server.url}${address}?${query}`, {
      headers: { "last-event-id": "-1" },
    });
    expect(stream.headers.get("location")).toMatch(
      new RegExp(`^${address}\\?${query.replace(/[?+|]/g, "\\$&")}`),
    );
    expect(new Set(namesOf(await stream.rest()))).toEqual(new Set(["metadata", `tasks|${wanted}`]));
  });

  test("is requested by the SDK's streamNamespaces", async () => {
    const client = new Client({ apiUrl: server.url });
    const names: string[] = [];
    for await (const { event } of client.runs.stream(await api.aThread(), "research", {
      input: saying("cats"),
      streamMode: ["updates"],
      streamSubgraphs: true,
      streamNamespaces: [""],
    }))
      names.push(event);
    expect(inBrief(names)).toEqual(new Set(["metadata", "updates"]));
  });

  test("is refused with too many of them", async () => {
    const query = Array.from({ length: 101 }, (_, index) => `namespace=n${index}`).join("&");
    const response = await fetch(await path(query), {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(RESEARCH),
    });
    expect(response.status).toBe(422);
    expect(await response.text()).toContain("namespace");
  });

  test("is documented in the API's description", async () => {
    expect((await api.get<{ flags: object }>("/info")).body.flags).toMatchObject({
      strict_resume: true,
      stream_namespaces: true,
    });
  });
});
