import { describe, expect, test, vi } from "vitest";
import type { AccessRequest } from "../../src/access/api-keys.ts";
import { createUserAuthentication, createKnownCallers, userOf } from "../../src/access/auth/authenticate.ts";
import { createDecisions, HandlerError } from "../../src/access/auth/decisions.ts";
import { FilterError } from "../../src/access/auth/filters.ts";
import { CallerGoneError } from "../../src/platform/domain/errors.ts";
import { refusalOf } from "../../src/http/errors.ts";
import { listeningLogger } from "../helpers/parts.ts";

/** How the server treats the answers of a project's handlers. These tests start no server. */

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
  test("receives a web Request with its signal", async () => {
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

  test("has 10 seconds to answer, then the caller counts as unknown", async () => {
    const error = await thrown(() => asking(never, { handlerSeconds: 0.02 })(requestOf({})));
    expect(error).toMatchObject({ kind: "unavailable" });
  });

  test("is no longer awaited once its caller has disconnected", async () => {
    const leaving = new AbortController();
    const waiting = thrown(() => asking(never)(requestOf({}, { callerGone: () => leaving.signal })));
    leaving.abort(new CallerGoneError());
    expect(await waiting).toBeInstanceOf(CallerGoneError);
  });

  test("asks for the caller's signal only when it has to wait", async () => {
    const callerGone = vi.fn(() => new AbortController().signal);
    await asking(() => "alice")(requestOf({}, { callerGone }));
    expect(callerGone).not.toHaveBeenCalled();
    await asking(async () => "alice")(requestOf({}, { callerGone }));
    expect(callerGone).toHaveBeenCalledOnce();
  });

  test.each([undefined, null, 0, 7, true, false, "", [], ["alice"], {}, { identity: 1 }, { identity: "" }])(
    "that returns %j causes a 401 and a single log line, however often it happens",
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

  test("passes on a user with is_authenticated false, so that handlers can check it", () => {
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

  test("saves a call for requests with the same values in the headers that it names, and for no others", async () => {
    const authenticate = vi.fn((request: Request) => request.headers.get("authorization") ?? "nobody");
    const ask = asking(authenticate, { cache: CACHE });
    const identityFor = async (headers: AccessRequest["headers"]) => (await ask(requestOf(headers))).identity;
    expect(await identityFor({ authorization: "a" })).toBe("a");
    expect(await identityFor({ authorization: "a", "user-agent": "another" })).toBe("a");
    expect(authenticate).toHaveBeenCalledTimes(1);
    await identityFor({ authorization: "a", "x-tenant": "blue" });
    await identityFor({ authorization: "b" });
    expect(authenticate).toHaveBeenCalledTimes(3);
    // With none of these headers, callers cannot be distinguished.
    await identityFor({});
    await identityFor({});
    expect(authenticate).toHaveBeenCalledTimes(5);
  });

  test("stores no refusal", async () => {
    const authenticate = vi.fn(() => {
      throw new Error("not yet");
    });
    const ask = asking(authenticate, { cache: CACHE });
    for (const _ of [1, 2]) expect(await thrown(() => ask(requestOf({ authorization: "a" })))).toBeDefined();
    expect(authenticate).toHaveBeenCalledTimes(2);
  });

  test("is bypassed when a fresh answer is required; stores that answer, and drops a user who is refused, but not after a fault", async () => {
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

  test("drops an entry when its time is up, however often it was used, and evicts the least recently used one", () => {
    let now = 1_000;
    const known = createKnownCallers(CACHE, () => now);
    const keyOf = (token: string): string => known.keyOf({ authorization: token }) ?? "";
    for (const token of ["a", "b"]) known.add(keyOf(token), userOf(token));
    now = 10_999;
    expect(known.find(keyOf("a"))?.identity).toBe("a");
    known.add(keyOf("c"), userOf("c"));
    expect([known.find(keyOf("b")), known.find(keyOf("a"))?.identity]).toEqual([undefined, "a"]);
    now = 11_001;
    expect([known.find(keyOf("a")), known.find(keyOf("c"))?.identity]).toEqual([undefined, "c"]);
  });

  test.each([0.0005, 2.01, 16.1])("keeps entries for %d seconds", (ttlSeconds) => {
    let now = 1_000;
    const known = createKnownCallers({ ...CACHE, ttlSeconds }, () => now);
    known.add("a", userOf("a"));
    expect(known.find("a")?.identity).toBe("a");
    now += ttlSeconds * 1_000 + 2;
    expect(known.find("a")).toBeUndefined();
  });
});

describe("a handler of an event", () => {
  const deciding = (answer: (argument: { value: unknown }) => unknown, options = {}) => {
    const decide = createDecisions({ handlerOf: () => answer as never }, options);
    return () => decide(userOf("alice"), "threads", "create", { metadata: { topic: "weather" } });
  };

  test.each([undefined, null, true])(
    "that answers %j allows the request and hides nothing",
    async (answer) => {
      for (const given of [answer, Promise.resolve(answer)])
        expect((await deciding(() => given)())?.filter).toBeUndefined();
    },
  );

  test("that answers false, or a promise of false, refuses", async () => {
    for (const answer of [false, Promise.resolve(false)])
      expect(await thrown(deciding(() => answer))).toMatchObject({ kind: "forbidden" });
  });

  test.each([0, 1, "", "yes", Symbol("x"), 1n])("that answers %s causes a server error", async (answer) => {
    for (const given of [answer, Promise.resolve(answer)])
      expect(await thrown(deciding(() => given))).toBeInstanceOf(HandlerError);
  });

  test.each([
    ["a list", []],
    ["a list of filters", [{ owner: "alice" }]],
    ["a date", new Date(0)],
    ["a filter with an unknown operator", { owner: { $in: ["alice"] } }],
  ])("that answers %s causes a server error whose reason is logged", async (_name, answer) => {
    const error = await thrown(deciding(() => answer));
    expect(error).toBeInstanceOf(HandlerError);
    expect((error as Error).cause).toBeInstanceOf(FilterError);
  });

  test("that hangs is given up, and the permission counts as unknown", async () => {
    expect(await thrown(deciding(never, { handlerSeconds: 0.02 }))).toMatchObject({ kind: "unavailable" });
  });

  test("that filters by a key whose values are encrypted causes a server error: such a filter would hide everything", async () => {
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

  test("may change its value in place at any depth: the change is granted, and the original request stays unchanged", async () => {
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

    // This holds however the handler stores the value, also if it keeps a reference.
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

  test("may replace the requested metadata with other metadata, but only with values that a client could send", async () => {
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
