import { describe, expect, test } from "vitest";
import { headerChooser, USUAL_CONFIGURABLE } from "../../src/http/header-choice.ts";
import { headerChoiceOf, headersSchema } from "../../src/graphs/project/http.ts";

const HEADERS = {
  host: "here",
  authorization: "Bearer secret",
  cookie: "session=secret",
  "user-agent": "a browser",
  "x-api-key": "secret",
  "x-service-key": "secret",
  "x-tenant-id": "secret",
  "x-request-id": "17",
  "x-own-thing": "mine",
  "x-other": "theirs",
  "sec-websocket-protocol": "v1, x-api-key.secret",
};
const chosen = (choice: object | undefined, headers: Record<string, string> = HEADERS) =>
  headerChooser(headerChoiceOf(headersSchema.parse(choice)), USUAL_CONFIGURABLE)?.(headers);

describe("headers in the configuration of runs", () => {
  test("are by default the x- headers and the user agent, but no keys", () => {
    expect(chosen(undefined)).toEqual({
      "user-agent": "a browser",
      "x-request-id": "17",
      "x-own-thing": "mine",
      "x-other": "theirs",
    });
  });

  test.each([
    [{ includes: ["x-own-*"] }, ["x-own-thing"]],
    [{ include: ["X-OWN-*", "Host"] }, ["host", "x-own-thing"]],
    [{ includes: ["*-thing", "x-*-id"] }, ["x-request-id", "x-own-thing"]],
    [{ includes: ["x-*o*n*thing*"] }, ["x-own-thing"]],
    [{ includes: ["x-own-thing*x"] }, undefined],
    [{ includes: ["*"], excludes: ["x-*"] }, ["host", "user-agent"]],
    [{ excludes: ["x-other", "user-*"] }, ["x-request-id", "x-own-thing"]],
    [{ excludes: ["x-o*"], includes: ["x-own-thing"] }, undefined],
    [{ exclude: ["*"] }, undefined],
    [{ includes: [] }, undefined],
  ])("are chosen by %j", (choice, names) => {
    const found = chosen(choice);
    expect(found && Object.keys(found)).toEqual(names);
  });

  test.each(["authorization", "cookie", "x-api-key", "x-service-key", "x-tenant-id"])(
    "include %s only if it is named, not by a pattern",
    (name) => {
      expect(chosen({ includes: ["*"] })).not.toHaveProperty(name);
      expect(chosen({ includes: [`${name.slice(0, -1)}*`] })).toBeUndefined();
      expect(chosen({ includes: [name] })).toHaveProperty(name);
      expect(chosen({ includes: [name], excludes: [`${name.slice(0, 3)}*`] })).toBeUndefined();
    },
  );

  test("never include the key of a WebSocket", () => {
    expect(chosen({ includes: ["sec-websocket-protocol", "*"] })).not.toHaveProperty(
      "sec-websocket-protocol",
    );
  });

  test("can't set a prototype, and have a maximum size", () => {
    const headers = JSON.parse('{"x-a": "1", "__proto__": "2", "constructor": "3"}') as Record<
      string,
      string
    >;
    headers["x-huge"] = "x".repeat(10_000);
    expect(chosen({ includes: ["*"] }, headers)).toEqual({ "x-a": "1", constructor: "3" });
  });

  test("are matched in a time that a long name and many wildcards don't multiply", () => {
    const name = `x-${"a".repeat(16_000)}`;
    const pattern = `${"*a".repeat(90)}*b`;
    expect(chosen({ includes: [pattern] }, { [name]: "1" })).toBeUndefined();
  });
});

test("an invalid header name is refused at the start", () => {
  expect(headersSchema.safeParse({ includes: ["x own"] }).success).toBe(false);
  expect(headersSchema.safeParse({ includes: ["(a+)+"] }).success).toBe(false);
});
