import { describe, expect, test, vi } from "vitest";
import type { AccessRequest } from "../../src/access/api-keys.ts";
import { createUserAuthentication } from "../../src/access/auth/authenticate.ts";
import { createDecisions, HandlerError } from "../../src/access/auth/decisions.ts";
import { FilterError } from "../../src/access/auth/filters.ts";
import { createKnownCallers } from "../../src/access/auth/known-callers.ts";
import { userOf } from "../../src/access/auth/users.ts";
import { CallerGoneError } from "../../src/platform/domain/errors.ts";
import { refusalOf } from "../../src/http/errors.ts";
import { listeningLogger } from "../helpers/parts.ts";

/** What becomes of the answers of a project's handlers, without a server. */

const asking = (authenticate: (request: Request) => unknown, options = {}) =>
  createUserAuthentication({
    handlers: { authenticate },
    letsStudioIn: false,
    logger: listeningLogger().logger,
    ...options,
  });
const requestOf = (headers: AccessRequest["headers"], more: Partial<AccessRequest> = {}): AccessRequest => ({
  method: "POST",
  url: "/threads?a=1",
  headers: { host: "api.example", ...headers },
  ...more,
});
const never = (): Promise<never> => new Promise(() => undefined);
const thrown = async (work: () => unknown): Promise<unknown> => {
  try {
    await work();
  } catch (error) {
    return error;
  }
  return undefined;
};

describe("authenticate", () => {
  test("is given the request as the web knows it, with its signal", async () => {
    const leaving = new AbortController();
    const seen: Record<string, unknown> = {};
    const ask = asking((request) => {
      const { method, url, signal } = request;
      Object.assign(seen, {
        isRequest: request instanceof Request,
        method,
        url,
        signal,
        token: request.headers.get("Authorization"),
        cookies: request.headers.get("cookie"),
        again: new Request(request).headers.get("authorization"),
      });
      return "alice";
    });
    await ask(
      requestOf({ authorization: "Bearer t", cookie: ["a=1", "b=2"] }, { callerGone: () => leaving.signal }),
    );
    expect(seen).toEqual({
      isRequest: true,
      method: "POST",
      url: "http://api.example/threads?a=1",
      signal: leaving.signal,
      token: "Bearer t",
      cookies: expect.stringContaining("b=2") as string,
      again: "Bearer t",
    });
  });

  test("is waited for 10 seconds at most, and then nobody knows who asks", async () => {
    const error = await thrown(() => asking(never, { handlerSeconds: 0.02 })(requestOf({})));
    expect(error).toMatchObject({ kind: "unavailable" });
  });

  test("is not waited for by whom who has left", async () => {
    const leaving = new AbortController();
    const waiting = thrown(() => asking(never)(requestOf({}, { callerGone: () => leaving.signal })));
    leaving.abort(new CallerGoneError());
    expect(await waiting).toBeInstanceOf(CallerGoneError);
  });

  test("is asked for a caller's signal only where somebody has to wait", async () => {
    const callerGone = vi.fn(() => new AbortController().signal);
    await asking(() => "alice")(requestOf({}, { callerGone }));
    expect(callerGone).not.toHaveBeenCalled();
    await asking(async () => "alice")(requestOf({}, { callerGone }));
    expect(callerGone).toHaveBeenCalledOnce();
  });

  test.each([undefined, null, 0, 7, true, false, "", [], ["alice"], {}, { identity: 1 }, { identity: "" }])(
    "that returns %j is a 401 and one line in the log, however often",
    async (answer) => {
      const { logger, lines } = listeningLogger();
      const ask = asking(() => answer, { logger });
      for (let time = 0; time < 3; time += 1) {
        const refusal = refusalOf(await thrown(() => ask(requestOf({}))));
        expect(refusal).toEqual({ status: 401, detail: "The request could not be authenticated." });
      }
      expect(lines).toHaveLength(1);
      expect(JSON.parse(lines[0] ?? "")).toMatchObject({
        level: 40,
        msg: "'authenticate' returned no user; the request was answered 401",
        path: "/threads",
      });
    },
  );

  test("passes on a user who says not to be authenticated, for handlers to look at", () => {
    expect(userOf({ identity: "guest", is_authenticated: false }).user).toEqual({
      identity: "guest",
      permissions: [],
      display_name: "guest",
      is_authenticated: false,
    });
  });
});

describe("auth.cache", () => {
  const CACHE = { headers: ["authorization", "x-tenant"], ttlSeconds: 10, maxSize: 2 };

  test("spares a call for the same headers that it names, and for no others", async () => {
    const authenticate = vi.fn((request: Request) => request.headers.get("authorization") ?? "nobody");
    const ask = asking(authenticate, { cache: CACHE });
    const identityFor = async (headers: AccessRequest["headers"]) => (await ask(requestOf(headers))).identity;
    expect(await identityFor({ authorization: "a" })).toBe("a");
    expect(await identityFor({ authorization: "a", "user-agent": "another" })).toBe("a");
    expect(authenticate).toHaveBeenCalledTimes(1);
    await identityFor({ authorization: "a", "x-tenant": "blue" });
    await identityFor({ authorization: "b" });
    expect(authenticate).toHaveBeenCalledTimes(3);
    // None of the headers: nothing tells its caller from others.
    await identityFor({});
    await identityFor({});
    expect(authenticate).toHaveBeenCalledTimes(5);
  });

  test("keeps no refusal", async () => {
    const authenticate = vi.fn(() => {
      throw new Error("not yet");
    });
    const ask = asking(authenticate, { cache: CACHE });
    for (const _ of [1, 2]) expect(await thrown(() => ask(requestOf({ authorization: "a" })))).toBeDefined();
    expect(authenticate).toHaveBeenCalledTimes(2);
  });

  test("is not asked for what has to be known afresh, takes what is answered then, and forgets who is refused, but for a fault", async () => {
    let answer: () => unknown = () => ({ identity: "a", permissions: ["before"] });
    const authenticate = vi.fn(() => answer());
    const ask = asking(authenticate, { cache: CACHE });
    const request = requestOf({ authorization: "a" });
    const permissions = async (more = {}) => (await ask({ ...request, ...more })).permissions;
    expect(await permissions()).toEqual(["before"]);
    answer = () => ({ identity: "a", permissions: ["by now"] });
    expect(await permissions()).toEqual(["before"]);
    expect(await permissions({ afresh: true })).toEqual(["by now"]);
    expect(await permissions()).toEqual(["by now"]);
    expect(authenticate).toHaveBeenCalledTimes(2);
    for (const [status, isKept] of [
      [503, true],
      [429, true],
      [401, false],
    ] as const) {
      answer = () => {
        throw Object.assign(new Error("no"), { status, headers: {} });
      };
      expect(await thrown(() => ask({ ...request, afresh: true }))).toMatchObject({ status });
      const error = await thrown(() => ask(request));
      expect([status, error === undefined]).toEqual([status, isKept]);
    }
  });

  test("forgets after its time, however often it was asked, and who was looked for longest ago", () => {
    let now = 0;
    const known = createKnownCallers(CACHE, () => now);
    const keyOf = (token: string): string => known.keyOf({ authorization: token }) ?? "";
    for (const token of ["a", "b"]) known.add(keyOf(token), userOf(token));
    now = 9_999;
    expect(known.find(keyOf("a"))?.identity).toBe("a");
    known.add(keyOf("c"), userOf("c"));
    expect([known.find(keyOf("b")), known.find(keyOf("a"))?.identity]).toEqual([undefined, "a"]);
    now = 10_000;
    expect([known.find(keyOf("a")), known.find(keyOf("c"))?.identity]).toEqual([undefined, "c"]);
  });
});

describe("a handler of an event", () => {
  const deciding = (answer: (argument: { value: unknown }) => unknown, options = {}) => {
    const decide = createDecisions({ handlerOf: () => answer as never }, options);
    return () => decide(userOf("alice"), "threads", "create", { metadata: { topic: "weather" } });
  };

  test.each([undefined, null, true])("that answers %j allows, and hides nothing", async (answer) => {
    for (const given of [answer, Promise.resolve(answer)])
      expect((await deciding(() => given)())?.filter).toBeUndefined();
  });

  test("that answers false, or promises it, refuses", async () => {
    for (const answer of [false, Promise.resolve(false)])
      expect(await thrown(deciding(() => answer))).toMatchObject({ kind: "forbidden" });
  });

  test.each([0, 1, "", "yes", Symbol("x"), 1n])("that answers %s is at fault", async (answer) => {
    for (const given of [answer, Promise.resolve(answer)])
      expect(await thrown(deciding(() => given))).toBeInstanceOf(HandlerError);
  });

  test.each([
    ["a list", []],
    ["a list of filters", [{ owner: "alice" }]],
    ["a date", new Date(0)],
    ["a filter that nobody understands", { owner: { $in: ["alice"] } }],
  ])("that answers %s is at fault, with the reason for the log", async (_name, answer) => {
    const error = await thrown(deciding(() => answer));
    expect(error).toBeInstanceOf(HandlerError);
    expect((error as Error).cause).toBeInstanceOf(FilterError);
  });

  test("that hangs is given up, and then nobody knows who may do what", async () => {
    expect(await thrown(deciding(never, { handlerSeconds: 0.02 }))).toMatchObject({ kind: "unavailable" });
  });

  test("that filters by a key whose values are sealed is at fault: it would hide everything", async () => {
    const encryptedKeys = new Set(["owner", "floor"]);
    for (const filter of [
      { owner: "alice" },
      { $or: [{ team: "blue" }, { $and: [{ owner: { $contains: "alice" } }] }] },
      { place: { floor: 2 } },
    ]) {
      const error = await thrown(deciding(() => filter, { encryptedKeys }));
      expect(((error as Error).cause as Error).message).toMatch(/LANGGRAPH_AES_JSON_KEYS/);
    }
    expect((await deciding(() => ({ team: "owner" }), { encryptedKeys })())?.filter).toBeDefined();
  });

  test("may change in place what it is given, at any depth: that is granted, and what was asked for stays as it is", async () => {
    const asked = () => ({
      ...{ thread_id: "t", assistant_id: "a", run_id: "r", status: "pending" as const },
      metadata: { tags: { of: ["weather"] } },
      kwargs: {
        input: { messages: [{ content: "hi" }] },
        config: { configurable: { deep: { model: "small" } }, tags: ["one"] },
        stream_mode: ["values"],
      },
    });
    type Given = ReturnType<typeof asked>;
    const decide = (handler: (value: Given) => unknown) =>
      createDecisions({
        handlerOf: () => ((argument: { value: Given }) => handler(argument.value)) as never,
      });
    const before = asked();
    const granted = await decide((value) => {
      value.kwargs.config.configurable.deep.model = "large";
      value.kwargs.config.tags.push("two");
      value.metadata.tags.of[0] = "news";
    })(userOf("alice"), "threads", "create_run", before);
    expect(before).toEqual(asked());
    const { metadata, kwargs } = granted!.value;
    expect(metadata).toEqual({ tags: { of: ["news"] } });
    expect(kwargs.config).toEqual({ configurable: { deep: { model: "large" } }, tags: ["one", "two"] });
    // What it has not looked at was not copied: it may be megabytes.
    expect(kwargs.input).toBe(before.kwargs.input);

    // However a handler takes it over, also if it keeps it for itself.
    for (const takeOver of [
      (value: Given) => (value.kwargs = { ...value.kwargs }),
      (value: Given) => (value.kwargs = structuredClone(value.kwargs)),
      (value: Given) => Object.freeze(value.kwargs),
      (value: Given) => (value.kwargs.input = { messages: [{ content: "hi" }] }),
    ]) {
      const same = await decide((value) => void takeOver(value))(
        userOf("alice"),
        "threads",
        "create_run",
        before,
      );
      expect(same!.value).toEqual(asked());
      expect(before).toEqual(asked());
    }
  });

  test("may put other metadata in the place of those asked for, and nothing that a client could not send", async () => {
    const granted = await deciding(({ value }) => {
      (value as { metadata: object }).metadata = { owner: "alice" };
    })();
    expect(granted?.value.metadata).toEqual({ owner: "alice" });
    for (const metadata of ["alice", ["alice"], { name: "a\0b" }, undefined])
      expect(
        await thrown(
          deciding(({ value }) => {
            (value as { metadata: unknown }).metadata = metadata;
          }),
        ),
      ).toBeInstanceOf(HandlerError);
  });
});
