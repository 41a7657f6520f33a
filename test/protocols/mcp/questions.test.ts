import type { Client } from "@modelcontextprotocol/client";
import { describe, expect, it } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { saying, type Api } from "../../helpers/api.ts";
import type { TestServer } from "../../helpers/app.ts";
import { onServer } from "../../helpers/servers.ts";
import { ask, newClient, oldClient, WITH_FORMS, type Message } from "./clients.ts";

let server: TestServer;
let api: Api;
onServer({}, (opened) => ({ server, api } = opened));

type Answer = { action: "accept"; content: Record<string, string> } | { action: "decline" | "cancel" };

/** Answers the questions in turn; `asked` collects them. */
const answering = (client: Client, answers: Answer[], asked: unknown[]): void => {
  client.setRequestHandler("elicitation/create", ({ params }) => {
    asked.push(JSON.parse(params.message));
    return answers.shift()!;
  });
};

const accept = (answer: string): Answer => ({ action: "accept", content: { answer } });

const call = { name: "approval", arguments: saying("a refund") };

describe("a client that can ask its user", () => {
  it("is asked what the graph asks, until the graph has an answer", async () => {
    const client = await newClient(server.url, { capabilities: WITH_FORMS });
    const asked: unknown[] = [];
    answering(client, [accept('{"decision": "perhaps"}'), accept("approve")], asked);
    const result = await client.callTool(call);
    expect(asked).toEqual([
      expect.objectContaining({ question: "Send this draft?" }),
      expect.objectContaining({ problem: "Not a decision." }),
    ]);
    expect(result.structuredContent).toMatchObject({ status: "sent" });
    const { thread_id: threadId } = result._meta as { thread_id: string };
    expect(await api.runs(threadId)).toHaveLength(3);
  });

  it.each([
    ["text that is JSON", accept('{"decision": "reject"}'), "rejected"],
    ["a value", accept("true"), "sent"],
    ["other text", accept("Dear Ada"), "sent"],
    ["a form of its own", { action: "accept", content: { decision: "reject" } } as const, "rejected"],
  ])("answers with %s", async (_kind, answer, status) => {
    const client = await newClient(server.url, { capabilities: WITH_FORMS });
    answering(client, [answer], []);
    expect((await client.callTool(call)).structuredContent).toMatchObject({ status });
  });

  it.each(["decline", "cancel"] as const)("may %s, and nothing more is done", async (action) => {
    const client = await newClient(server.url, { capabilities: WITH_FORMS });
    answering(client, [{ action }], []);
    const result = await client.callTool(call);
    expect(result).toMatchObject({ isError: true });
    const { thread_id: threadId } = result._meta as { thread_id: string };
    expect((await api.thread(threadId)).status).toBe("interrupted");
  });

  interface Asked {
    resultType: string;
    inputRequests: Record<string, unknown>;
    requestState: string;
  }
  const raw = async (params: object): Promise<Message> =>
    (await ask(server.url, "tools/call", { ...call, ...params }, { capabilities: WITH_FORMS })).message;

  it("counts one of two answers to a question", async () => {
    const { inputRequests, requestState } = (await raw({})).result as unknown as Asked;
    const inputResponses = { [Object.keys(inputRequests)[0]!]: accept("approve") };
    const both = await Promise.all([
      raw({ inputResponses, requestState }),
      raw({ inputResponses, requestState }),
    ]);
    expect(both.map(({ result }) => result?.["isError"] === true).sort()).toEqual([false, true]);
    expect(await api.runs(requestState.split(":")[0]!)).toHaveLength(2);
  });

  it("is asked again if an answer is missing or belongs to another question", async () => {
    const { inputRequests, requestState } = (await raw({})).result as unknown as Asked;
    for (const inputResponses of [{}, { other: accept("approve") }, { constructor: accept("approve") }]) {
      const { result } = await raw({ inputResponses, requestState });
      expect(result).toMatchObject({ resultType: "input_required", inputRequests });
    }
    expect(await api.runs(requestState.split(":")[0]!)).toHaveLength(1);
  });

  it.each(["nonsense", `${newId()}:${newId()}`, ""])(
    "can't go on with the state %j",
    async (requestState) => {
      expect((await raw({ requestState, inputResponses: {} })).error?.code).toBe(-32_602);
    },
  );

  it("can't go on with a run of the API", async () => {
    const threadId = await api.aThread();
    await api.aFinishedRun(threadId, { assistant_id: "approval", input: saying("a refund") });
    const [run] = await api.runs(threadId);
    const requestState = `${threadId}:${run!.run_id}.1`;
    const { error } = await raw({ requestState, inputResponses: {} });
    expect(error).toMatchObject({ code: -32_602, message: "There is no such task." });
  });

  it("can't go on with another tool", async () => {
    const { requestState } = (await raw({})).result as unknown as Asked;
    const { result } = await raw({ name: "two-step", requestState, inputResponses: {} });
    expect(result).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining("another tool") }],
    });
  });
});

describe("a client that can't ask", () => {
  it.each([
    ["of the newest revision", async () => await newClient(server.url)],
    ["of older revisions", async () => await oldClient(server.url)],
  ])("%s reads how to go on with the thread, and does so", async (_revision, open) => {
    const client = await open();
    await client.listTools();
    const threadId = newId();
    const first = await client.callTool({ ...call, arguments: { ...call.arguments, thread_id: threadId } });
    const text = (first.content as { text: string }[])[0]!.text;
    expect(text).toContain("Send this draft?");
    expect(text).toContain(threadId);
    expect(text).toContain("'resume'");
    const second = await client.callTool({
      name: "approval",
      arguments: { thread_id: threadId, resume: { decision: "approve" } },
    });
    expect(second.structuredContent).toMatchObject({ status: "sent" });
  });

  it("reads that a call without a thread can't be continued", async () => {
    const client = await oldClient(server.url);
    const { content } = await client.callTool(call);
    expect((content as { text: string }[])[0]!.text).toContain("a new UUID as 'thread_id'");
    const resumed = await client.callTool({ name: "approval", arguments: { resume: "approve" } });
    expect(resumed).toMatchObject({ isError: true });
  });
});
