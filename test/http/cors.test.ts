import { afterAll, beforeAll, expect, test } from "vitest";
import type { RoutePlugin } from "../../src/http/route-plugin.ts";
import { aBareApp } from "../helpers/parts.ts";

const STUDIO = "https://smith.langchain.com";
const EXPOSED = ["Content-Location", "Location", "X-Pagination-Total", "X-Pagination-Next", "X-Request-Id"];

const routes: RoutePlugin = async (app) => {
  app.get("/fine", async () => ({ fine: true }));
  app.get("/boom", async () => {
    throw new Error("boom");
  });
};

let open: Awaited<ReturnType<typeof aBareApp>>;
let listed: Awaited<ReturnType<typeof aBareApp>>;
beforeAll(async () => {
  open = await aBareApp({ routes: [routes], apiKeys: ["key"] });
  listed = await aBareApp({ routes: [routes], corsAllowOrigins: [STUDIO, "http://localhost:3000"] });
});
afterAll(async () => {
  await open.app.close();
  await listed.app.close();
});

test("a preflight is answered without a key, and lets every method and header through", async () => {
  for (const method of ["GET", "POST", "PUT", "PATCH", "DELETE"]) {
    const answer = await open.client
      .options("/threads/x/runs/stream")
      .set("origin", STUDIO)
      .set("access-control-request-method", method)
      .set("access-control-request-headers", "content-type, x-api-key, x-auth-scheme, last-event-id, x-own");
    expect(answer.status).toBe(204);
    expect(answer.headers["access-control-allow-origin"]).toBe("*");
    expect(answer.headers["access-control-allow-methods"]).toContain(method);
    expect(answer.headers["access-control-allow-headers"]).toBe(
      "content-type, x-api-key, x-auth-scheme, last-event-id, x-own",
    );
  }
});

test("a public page may talk to a private address, which Chrome asks about", async () => {
  const answer = await open.client
    .options("/fine")
    .set("origin", STUDIO)
    .set("access-control-request-method", "GET")
    .set("access-control-request-private-network", "true");
  expect(answer.headers["access-control-allow-private-network"]).toBe("true");
});

test.each([
  ["/fine", "key", 200],
  ["/fine", "", 401],
  ["/fine", "wrong", 403],
  ["/nope", "key", 404],
  ["/boom", "key", 500],
])("browsers may read the answer of %s with key '%s', and its headers", async (path, key, status) => {
  const answer = await open.client.get(path).set("origin", STUDIO).set("x-api-key", key);
  expect(answer.status).toBe(status);
  expect(answer.headers["access-control-allow-origin"]).toBe("*");
  for (const header of EXPOSED) expect(answer.headers["access-control-expose-headers"]).toContain(header);
});

test("browsers may read even the refusal of a path that can't be read", async () => {
  const any = await open.client.get("/%ED%A0%80").set("origin", STUDIO);
  expect([any.status, any.headers["access-control-allow-origin"]]).toEqual([400, "*"]);
  const known = await listed.client.get("/%ED%A0%80").set("origin", STUDIO);
  expect(known.headers["access-control-allow-origin"]).toBe(STUDIO);
  const unknown = await listed.client.get("/%ED%A0%80").set("origin", "https://evil.example");
  expect(unknown.headers).not.toHaveProperty("access-control-allow-origin");
});

test("with a list of origins, only those are let in", async () => {
  const known = await listed.client.get("/fine").set("origin", STUDIO);
  expect(known.headers["access-control-allow-origin"]).toBe(STUDIO);
  expect(known.headers.vary).toContain("Origin");
  const unknown = await listed.client.get("/fine").set("origin", "https://evil.example");
  expect(unknown.headers).not.toHaveProperty("access-control-allow-origin");
});
