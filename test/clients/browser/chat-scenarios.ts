import { afterAll, afterEach, beforeAll, describe, expect } from "vitest";
import { feature } from "../../compatibility/feature.ts";
import { apiOf, textsOf } from "../../helpers/api.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { LONG_TEXT, personAt } from "./chat-person.ts";
import { reasonForNoBrowser, startPageHost, type PageHost, type PageSource, type Tab } from "./chromium.ts";

const missing = reasonForNoBrowser();
if (missing !== undefined) process.stderr.write(`Skipped, the tests in a browser: ${missing}.\n`);

const ECHO = /^You said: "(.*)"\. I can use: get_weather, calculate\.$/s;

interface HookTraits {
  /** The hook shows the branches, and a person can switch between them. */
  branches: boolean;
  /** The hook treats states with a lower step than the known one as old, so a branch from further back appears only after a reload. */
  keepsLeftMessages: boolean;
  follows: boolean;
  /** The hook sends from the state that it has read, which another tab may have replaced: this makes a branch. */
  sendsFromKnownState: boolean;
}

/**
 * A person's actions in a chat, which every front-end hook must support in a real browser, from an origin of its own. `client` is the
 * package and its version.
 */
export const describeChat = (client: string, source: PageSource, traits: HookTraits): void => {
  describe(client, () => {
    let server: TestServer;
    let host: PageHost;
    let tabs: Tab[] = [];
    beforeAll(async () => {
      if (missing === undefined)
        [server, host] = await Promise.all([startTestServer(), startPageHost(source)]);
    });
    afterEach(async () => {
      const faults = tabs.flatMap((tab) => tab.faults);
      tabs = [];
      await host?.closeTabs();
      expect(faults).toEqual([]);
    });
    afterAll(async () => {
      await host?.close();
      await server?.close();
    });
    const test = (row: string, body: () => Promise<void>): void =>
      feature({ table: "Hooks of front ends, in Chromium", row, column: client }, async ({ skip }) => {
        if (missing !== undefined) skip(missing);
        await body();
      });
    const aPerson = async (assistant: string, thread?: string) => {
      const tab = await host.open({
        api: server.url,
        assistant,
        ...(thread === undefined ? {} : { thread }),
      });
      tabs.push(tab);
      return personAt(tab);
    };
    const stored = async (threadId: string): Promise<unknown[]> =>
      textsOf((await apiOf(server).state(threadId)).values.messages);

    test("shows tokens live, and the thread's messages at the end", async () => {
      const person = await aPerson("agent");
      await person.say(LONG_TEXT);
      await person.untilTokensCome();
      expect((await person.lastText()).length).toBeLessThan(LONG_TEXT.length);
      await person.untilQuiet();
      const messages = await person.messages();
      expect(messages).toEqual([
        ["human", LONG_TEXT],
        ["ai", expect.stringMatching(ECHO)],
      ]);
      expect(await stored(await person.threadId())).toEqual(messages.map(([, text]) => text));

      await person.say("and then?");
      await person.until(async () => (await person.messages()).length).toBe(4);
      await person.untilQuiet();
      expect(await person.lastText()).toMatch(/^You said: "and then\?"/);
    });

    test("stops a run on the server, too", async () => {
      const api = apiOf(server);
      const person = await aPerson("agent");
      await person.say(LONG_TEXT);
      await person.untilTokensCome();
      await person.press("Stop");
      await person.untilQuiet();
      const threadId = await person.threadId();
      await api.untilQuiet(threadId);
      expect(await api.runs(threadId)).toMatchObject([{ status: "interrupted" }]);
      await person.say("hello again");
      await person.until(() => person.lastText()).toMatch(/^You said: "hello again"/);
      await person.untilQuiet();
    });

    test("continues after a reload in the middle of an answer", async () => {
      const person = await aPerson("agent");
      await person.say(LONG_TEXT);
      await person.untilTokensCome();
      await person.reload();
      await person.untilTokensCome();
      await person.until(() => person.lastText()).toMatch(ECHO);
      await person.untilQuiet();
      expect(await person.messages()).toEqual([
        ["human", LONG_TEXT],
        ["ai", expect.stringMatching(ECHO)],
      ]);
      const threadId = await person.threadId();
      await apiOf(server).untilQuiet(threadId);
      expect(await apiOf(server).runs(threadId)).toMatchObject([{ status: "success" }]);
      // This text distinguishes the next turn from the one that the reload replayed.
      await person.say("next");
      await person.until(() => person.lastText()).toMatch(/^You said: "next"/);
      await person.untilQuiet();
      expect((await person.messages()).length).toBe(4);
    });

    test("replaces an old message by another text: a branch", async () => {
      const person = await aPerson("agent");
      await person.say("first");
      await person.until(() => person.lastText()).toMatch(/^You said: "first"/);
      await person.untilQuiet();
      await person.say("second");
      await person.until(() => person.lastText()).toMatch(/^You said: "second"/);
      await person.untilQuiet();
      await person.type("edited");
      await person.press("Send in place of this");
      await person.until(() => person.lastText()).toMatch(/^You said: "edited"/);
      await person.untilQuiet();
      if (traits.keepsLeftMessages) await person.reload();
      await person
        .until(async () => (await person.messages()).map(([, text]) => text))
        .toEqual(["edited", expect.stringMatching(/^You said: "edited"/)]);
      expect(await stored(await person.threadId())).toHaveLength(2);
      if (!traits.branches) return;
      await person.press("Branch 2/2");
      await person
        .until(async () => (await person.messages()).map(([, text]) => text))
        .toEqual([
          "first",
          expect.stringMatching(/^You said: "first"/),
          "second",
          expect.stringMatching(/^You said: "second"/),
        ]);
    });

    test("shows an interrupt, also after a reload, and continues with the answer", async () => {
      const person = await aPerson("approval");
      await person.say("a refund");
      await person.until(() => person.interrupt()).toMatchObject({ question: "Send this draft?" });
      await person.untilQuiet();
      await person.reload();
      await person.until(() => person.interrupt()).toMatchObject({ question: "Send this draft?" });
      await person.press("Approve");
      await person.until(() => person.lastText()).toMatch(/^Sent: Dear customer/);
      await person.untilQuiet();
      expect(await person.interrupt()).toBeUndefined();
      expect(await apiOf(server).thread(await person.threadId())).toMatchObject({ status: "idle" });
    });

    test("shows tool calls with their results", async () => {
      const person = await aPerson("agent");
      await person.say("What is 2 + 3?");
      await person
        .until(() => person.toolCalls())
        .toEqual([expect.stringMatching(/^calculate\(\{"expression":"2 \+ 3"\}\) = .*5/)]);
      await person.untilQuiet();
      expect((await person.messages()).map(([type]) => type)).toEqual(["human", "ai", "tool", "ai"]);
    });

    test("shows the error of a run, and the next run may succeed", async () => {
      const person = await aPerson("failing");
      await person.say("try");
      await person.until(() => person.error()).toContain("This graph always fails.");
      await person.untilQuiet();
      expect(await apiOf(server).thread(await person.threadId())).toMatchObject({ status: "error" });
    });

    test("shows that an assistant is missing, and sends no further request", async () => {
      const person = await aPerson("no-such-assistant");
      await person.say("hello");
      await person.until(() => person.error()).toContain("no-such-assistant");
      await person.untilSent();
      await person.untilQuiet();
    });

    test("lets two tabs open the same thread, and send at the same time", async () => {
      const one = await aPerson("agent");
      await one.say(LONG_TEXT);
      await one.untilTokensCome();
      const threadId = await one.threadId();
      const two = await aPerson("agent", threadId);
      await two.until(async () => (await two.messages())[0]).toEqual(["human", LONG_TEXT]);
      if (traits.follows) await two.untilTokensCome();
      await two.say("from the second tab");
      await two.until(() => two.lastText()).toMatch(/^You said: "from the second tab"/);
      await two.untilQuiet();
      await one.untilQuiet();
      await apiOf(server).untilQuiet(threadId);
      expect(await apiOf(server).runs(threadId)).toMatchObject([
        { status: "success" },
        { status: "success" },
      ]);
      expect(await stored(threadId)).toEqual([
        LONG_TEXT,
        ...(traits.sendsFromKnownState ? [] : [expect.stringMatching(ECHO)]),
        "from the second tab",
        expect.stringMatching(/^You said: "from the second tab"/),
      ]);
      expect((await two.messages()).map(([, text]) => text)).toEqual(await stored(threadId));
      // A hook that sends from a known state reads the history at its run's end, when the other tab's branch may be the newest.
      const shown = (await one.messages()).map(([, text]) => text);
      if (!traits.sendsFromKnownState || !shown.includes("from the second tab")) {
        expect(shown).toContainEqual(expect.stringMatching(ECHO));
      }
    });
  });
};
