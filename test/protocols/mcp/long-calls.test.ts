import type { ServerResponse } from "node:http";
import { describe, expect, it, onTestFinished } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { isAtGate, openGate } from "../../fixtures/gates.ts";
import { saying, type Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { eventually } from "../../helpers/conditions.ts";
import { onTwoServers } from "../../helpers/servers.ts";
import { ask, newClient, oldClient } from "./clients.ts";

let server: TestServer;
let replica: TestServer;
let api: Api;
onTwoServers((opened) => ({ server, replica, api } = opened));

describe("progress", () => {
  const asked = { name: "two-step", arguments: saying("hi") };
  const expected = [
    { progress: 1, message: "first" },
    { progress: 2, message: "second" },
  ];

  it("names the nodes that have ended", async () => {
    const client = await newClient(server.url);
    const seen: unknown[] = [];
    const result = await client.callTool(asked, { onprogress: (progress) => seen.push(progress) });
    expect(result.content).toEqual([{ type: "text", text: "second" }]);
    expect(seen).toEqual(expected);
  });

  it("reaches the official client of older revisions", async () => {
    const client = await oldClient(server.url);
    const seen: unknown[] = [];
    await client.callTool(asked, undefined, { onprogress: (progress) => seen.push(progress) });
    expect(seen).toEqual(expected);
  });

  it("of a run that another server executes arrives too", async () => {
    const client = await newClient(replica.url);
    const seen: unknown[] = [];
    await client.callTool(asked, { onprogress: (progress) => seen.push(progress) });
    expect(seen).toEqual(expected);
  });

  it.each([
    ["asks", { name: "approval", arguments: saying("a refund") }, ["write"]],
    ["fails", { name: "failing", arguments: { reason: "out of tea" } }, ["prepare"]],
  ])("does not name a node that %s", async (_what, call, names) => {
    const client = await newClient(server.url);
    const seen: unknown[] = [];
    await client.callTool(call, { onprogress: ({ message }) => seen.push(message) });
    expect(seen).toEqual(names);
  });

  it("needs no state of the graph among the events of the run", async () => {
    const [label, threadId] = [newId(), newId()];
    const client = await newClient(server.url);
    const seen: unknown[] = [];
    const call = client.callTool(
      { name: "gate", arguments: { label, thread_id: threadId } },
      { onprogress: ({ message }) => seen.push(message) },
    );
    await eventually("the run waits", () => isAtGate(label));
    const [run] = await api.runs(threadId);
    const events = await fetch(`${server.url}/threads/${threadId}/runs/${run!.run_id}/stream`, {
      headers: { "last-event-id": "-1" },
    });
    openGate(label);
    await call;
    expect(seen[0]).toBe("wait");
    const text = await events.text();
    expect(text).toContain('"name":"wait","ended":true');
    expect(text).not.toContain(label);
  });

  it("is not needed: a waiting answer sends white space, so that no proxy closes it", async () => {
    const label = newId();
    const call = await fetch(`${server.url}/mcp`, {
      method: "POST",
      headers: { accept: "application/json, text/event-stream", "content-type": "application/json" },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: { name: "gate", arguments: { label } },
      }),
    });
    expect(call.headers.get("content-type")).toMatch(/^application\/json/);
    const reader = call.body!.pipeThrough(new TextDecoderStream()).getReader();
    for (const _before of ["at once", "later"]) expect((await reader.read()).value).toBe("\n");
    openGate(label);
    expect((await reader.read()).value).toContain(`"done":["${label}"]`);
  });
});

describe("a client that closes the connection of its call", () => {
  const statusOf = async (threadId: string) => (await api.runs(threadId))[0]?.status;

  it("cancels the run in the newest revision", async () => {
    for (const { url } of [server, replica]) {
      const [label, threadId] = [newId(), newId()];
      const leaving = new AbortController();
      const call = ask(
        url,
        "tools/call",
        { name: "gate", arguments: { label, thread_id: threadId } },
        { signal: leaving.signal },
      );
      await eventually("the run waits", () => isAtGate(label));
      leaving.abort();
      await expect(call).rejects.toThrow();
      await eventually("the run is cancelled", async () => (await statusOf(threadId)) === "interrupted");
    }
  });

  it("cancels the run when the official client gives up", async () => {
    const [label, threadId] = [newId(), newId()];
    const client = await newClient(server.url);
    const leaving = new AbortController();
    const call = client.callTool(
      { name: "gate", arguments: { label, thread_id: threadId } },
      { signal: leaving.signal },
    );
    await eventually("the run waits", () => isAtGate(label));
    leaving.abort();
    await expect(call).rejects.toThrow();
    await eventually("the run is cancelled", async () => (await statusOf(threadId)) === "interrupted");
  });

  it("leaves the run alone in older revisions", async () => {
    const [label, threadId] = [newId(), newId()];
    const answers: ServerResponse[] = [];
    const note = (_request: unknown, answer: ServerResponse): void => void answers.push(answer);
    server.app.server.on("request", note);
    onTestFinished(() => void server.app.server.off("request", note));
    const client = await oldClient(server.url);
    const leaving = new AbortController();
    const call = client.callTool({ name: "gate", arguments: { label, thread_id: threadId } }, undefined, {
      signal: leaving.signal,
    });
    await eventually("the run waits", () => isAtGate(label));
    leaving.abort();
    await expect(call).rejects.toThrow();
    await client.close();
    await eventually("the server has noticed", () => answers.every(({ closed }) => closed));
    openGate(label);
    await eventually("the run has ended", async () => (await statusOf(threadId)) === "success");
  });
});

it("a run that someone cancels is a result with an error", async () => {
  const [label, threadId] = [newId(), newId()];
  const call = ask(server.url, "tools/call", { name: "gate", arguments: { label, thread_id: threadId } });
  await eventually("the run waits", () => isAtGate(label));
  const [run] = await api.runs(threadId);
  await api.cancel(threadId, run!.run_id);
  expect((await call).message.result).toMatchObject({
    isError: true,
    content: [{ text: "The run was cancelled." }],
    _meta: { thread_id: threadId, run_id: run!.run_id },
  });
});

it("clients that leave are no fault of the server", () => {
  const faults = [...server.lines, ...replica.lines].filter((line) => /"level":"?(?:50|error)/.test(line));
  expect(faults).toEqual([]);
});
