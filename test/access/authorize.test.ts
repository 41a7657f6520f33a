import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { createAuthorize } from "../../src/access/authorize.ts";
import { ANONYMOUS, KEY_SCOPES, THE_SERVER } from "../../src/access/caller.ts";
import { createAuthenticate } from "../helpers/access.ts";

const SOURCE = fileURLToPath(new URL("../../src/", import.meta.url));
const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" }).filter((file) =>
  file.endsWith(".ts"),
);
const mentioning = (word: string): string[] =>
  files.filter((file) => readFileSync(`${SOURCE}${file}`, "utf8").includes(word)).sort();

test("only authorization creates a visibility", () => {
  expect(mentioning("grantVisibility")).toEqual(["access/authorize.ts", "access/visibility.ts"]);
});

test("every repository turns its visibility into a condition, except where it only inserts, and for store items", () => {
  expect(mentioning("_visibility")).toEqual([
    "api/assistants/versions.ts",
    "api/crons/repository.ts",
    "api/store/repository.ts",
    "api/store/vectors.ts",
  ]);
  const setAside = (file: string): number =>
    readFileSync(`${SOURCE}${file}`, "utf8").split("_visibility").length - 1;
  expect([setAside("api/assistants/versions.ts"), setAside("api/crons/repository.ts")]).toEqual([1, 1]);
});

test("no route claims that the server itself is the caller", () => {
  expect(mentioning("THE_SERVER").filter((file) => /routes\.ts$|answers\.ts$|^http\//.test(file))).toEqual(
    [],
  );
});

test("a caller with access sees everything", async () => {
  const authorize = createAuthorize();
  for (const caller of [ANONYMOUS, THE_SERVER, { kind: "key", id: "0123", scopes: KEY_SCOPES } as const]) {
    const visibility = await authorize(caller, "threads", "read", {});
    expect(visibility.resource).toBe("threads");
    expect(visibility.on("metadata")).toEqual({ texts: ["true"], values: [] });
  }
});

const request = (headers: Record<string, string>) => ({ method: "GET", url: "/info", headers });

test("a request with a key has that key as its caller, and the caller's id does not reveal the key", () => {
  const authenticate = createAuthenticate(["first", "second"]);
  const [first, second] = ["first", "second"].map((key) => authenticate(request({ "x-api-key": key })));
  expect(first).toEqual({ kind: "key", id: "a7937b64b8ca", scopes: KEY_SCOPES });
  expect(second).toEqual({ kind: "key", id: "16367aacb67a", scopes: KEY_SCOPES });
  expect(authenticate(request({ authorization: "Bearer first" }))).toEqual(first);
});

test("the caller is anonymous if there are no keys, or if the route is open", () => {
  expect(createAuthenticate([])(request({ "x-api-key": "any" }))).toBe(ANONYMOUS);
  const open = { ...request({ "x-api-key": "first" }), isOpen: true };
  expect(createAuthenticate(["first"])(open)).toBe(ANONYMOUS);
});
