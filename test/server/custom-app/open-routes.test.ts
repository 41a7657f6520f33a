import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { startTestServer } from "../../helpers/app.ts";
import { sendRaw } from "../../helpers/raw-requests.ts";

/** Own routes that require a caller, at paths where the API has open routes. */

const KEY = "a-key-of-sixteen-characters";
const app = fileURLToPath(new URL("./apps/home.ts:app", import.meta.url));
const PLACES = [
  "/",
  "/docs",
  "/docs/",
  "/docs/static/mine.js",
  "/ui/a/b",
  "/admin",
  "/ui/%2e%2e/admin",
  "//ok",
];

const answersOf = async (http: object, headers: Record<string, string>, apiKeys = [KEY]) => {
  const server = await startTestServer({ projectKeys: { http: { app, ...http } }, apiKeys });
  try {
    const answers = [];
    for (const path of [...PLACES, "/%6fk"]) {
      const { status, body } = await sendRaw(server.url, `GET ${path}`, { headers });
      answers.push([path, status, body.includes("mine: ")] as const);
    }
    return answers;
  } finally {
    await server.close();
  }
};

const ASKING = { enable_custom_route_auth: true };

test("a stranger gets the API's answer on open routes, and none of the application's own routes", async () => {
  expect(await answersOf(ASKING, {})).toEqual([
    ["/", 302, false],
    ["/docs", 200, false],
    ["/docs/", 200, false],
    ["/docs/static/mine.js", 404, false],
    ["/ui/a/b", 404, false],
    ["/admin", 401, false],
    ["/ui/%2e%2e/admin", 404, false],
    ["//ok", 401, false],
    ["/%6fk", 200, false],
  ]);
  const wrong = await answersOf(ASKING, { "x-api-key": "a-key-that-nobody-has" });
  expect(wrong.filter(([, , isMine]) => isMine)).toEqual([]);
});

test("paths without such a route in the API are not open, in any spelling", async () => {
  const answers = await answersOf({ ...ASKING, disable_ui: true, disable_meta: true }, {});
  expect(answers.map(([, status]) => status)).toEqual([...PLACES.map(() => 401), 200]);
});

test("a known caller needs nothing more, and neither does any caller of a server without keys", async () => {
  const mine = ["/", "/docs", "/docs/", "/docs/static/mine.js", "/ui/a/b", "/admin"];
  for (const answers of [await answersOf(ASKING, { "x-api-key": KEY }), await answersOf(ASKING, {}, [])])
    expect(answers.filter(([, , isMine]) => isMine).map(([path]) => path)).toEqual(mine);
});
