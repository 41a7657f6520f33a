import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { originsOf } from "../../src/http/sites.ts";
import type { RoutePlugin } from "../../src/http/route-plugin.ts";
import { corsRulesOf, corsSchema } from "../../src/graphs/project/http.ts";
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

test("a preflight is answered without a key, and allows every method and header", async () => {
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

test("a public page may call a private address, which Chrome asks about", async () => {
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

test("with a list of origins, only those are allowed", async () => {
  const known = await listed.client.get("/fine").set("origin", STUDIO);
  expect(known.headers["access-control-allow-origin"]).toBe(STUDIO);
  expect(known.headers.vary).toContain("Origin");
  const unknown = await listed.client.get("/fine").set("origin", "https://evil.example");
  expect(unknown.headers).not.toHaveProperty("access-control-allow-origin");
});

describe("with http.cors in langgraph.json", () => {
  const APP = "https://app.example";
  const preflight = (app: Awaited<ReturnType<typeof aBareApp>>, origin: string) =>
    app.client
      .options("/fine")
      .set("origin", origin)
      .set("access-control-request-method", "POST")
      .set("access-control-request-headers", "content-type, x-own");
  const withRules = async <Result>(
    options: Parameters<typeof aBareApp>[0],
    use: (app: Awaited<ReturnType<typeof aBareApp>>) => Promise<Result>,
  ): Promise<Result> => {
    const app = await aBareApp({ routes: [routes], ...options });
    try {
      return await use(app);
    } finally {
      await app.app.close();
    }
  };

  test("a page of a listed origin may send cookies, and no other may", async () => {
    await withRules({ cors: { allow_origins: [APP, STUDIO], allow_credentials: true } }, async (app) => {
      for (const answer of [
        await app.client.get("/fine").set("origin", APP),
        await app.client.get("/nope").set("origin", APP),
        await preflight(app, APP),
      ]) {
        expect(answer.headers["access-control-allow-origin"]).toBe(APP);
        expect(answer.headers["access-control-allow-credentials"]).toBe("true");
        expect(answer.headers.vary).toContain("Origin");
      }
      const foreign = await app.client.get("/fine").set("origin", "https://evil.example");
      expect(foreign.headers).not.toHaveProperty("access-control-allow-origin");
    });
  });

  test("no page may send cookies if every origin is allowed", async () => {
    const cors = { allow_origins: ["*"], allow_credentials: true };
    await withRules({ cors }, async (app) => {
      const answer = await app.client.get("/fine").set("origin", APP);
      expect(answer.headers["access-control-allow-origin"]).toBe("*");
      expect(answer.headers).not.toHaveProperty("access-control-allow-credentials");
    });
  });

  test("a pattern matches whole origins, beside the listed ones", async () => {
    const cors = { allow_origins: [STUDIO], allow_origin_regex: "https://[a-z]+\\.app\\.example" };
    await withRules({ cors }, async (app) => {
      const allowed = async (origin: string) =>
        (await app.client.get("/fine").set("origin", origin)).headers["access-control-allow-origin"];
      expect(await allowed("https://one.app.example")).toBe("https://one.app.example");
      expect(await allowed(STUDIO)).toBe(STUDIO);
      expect(await allowed("https://one.app.example.evil.example")).toBeUndefined();
      expect(await allowed(`https://${"a".repeat(500)}.app.example`)).toBeUndefined();
    });
  });

  test("methods, headers, exposed headers and the age of a preflight are configurable", async () => {
    const cors = {
      allow_methods: ["get", "POST"],
      allow_headers: ["X-Api-Key"],
      expose_headers: ["X-Own"],
      max_age: 5,
    };
    await withRules({ cors }, async (app) => {
      const { headers } = await preflight(app, APP);
      expect(headers["access-control-allow-methods"]).toBe("GET, POST");
      expect(headers["access-control-allow-headers"]).toBe(
        "Accept, Accept-Language, Content-Language, Content-Type, X-Api-Key",
      );
      expect(headers["access-control-max-age"]).toBe("5");
      const exposed = (await app.client.get("/fine").set("origin", APP)).headers;
      for (const header of [...EXPOSED, "X-Own"])
        expect(exposed["access-control-expose-headers"]).toContain(header);
    });
  });

  test("'*' allows every method and any header that a page requests", async () => {
    await withRules({ cors: { allow_methods: ["*"], allow_headers: ["*"] } }, async (app) => {
      const { headers } = await preflight(app, APP);
      expect(headers["access-control-allow-methods"]).toContain("DELETE");
      expect(headers["access-control-allow-headers"]).toBe("content-type, x-own");
      expect(headers["access-control-max-age"]).toBe("600");
    });
  });

  test("CORS_ALLOW_ORIGINS overrides its origins", async () => {
    const options = { cors: { allow_origins: ["*"], allow_credentials: true }, corsAllowOrigins: [APP] };
    await withRules(options, async (app) => {
      const { headers } = await app.client.get("/fine").set("origin", APP);
      expect(headers["access-control-allow-origin"]).toBe(APP);
      expect(headers["access-control-allow-credentials"]).toBe("true");
      const foreign = await app.client.get("/fine").set("origin", STUDIO);
      expect(foreign.headers).not.toHaveProperty("access-control-allow-origin");
    });
  });

  test.each([
    [{ allow_origin_regex: "(" }, "allow_origin_regex"],
    [{ allow_origins: ["https://a.example, https://b.example"] }, "allow_origins"],
    [{ expose_headers: ["X-Own\r\nX-Other: 1"] }, "expose_headers"],
    [{ max_age: -1 }, "max_age"],
  ])("%j is refused, with the name of the field", (cors, field) => {
    const { error } = corsSchema.safeParse(cors);
    expect(error?.issues[0]?.path[0]).toBe(field);
  });
});

test("the allowed origins come from the environment, else from langgraph.json, else they depend on whether there are keys", () => {
  const rules = corsRulesOf({ allow_origins: ["https://app.example"] });
  const mayCall = (options: Parameters<typeof originsOf>[0]) =>
    ["https://app.example", "https://other.example", "http://localhost:3000"].filter((origin) =>
      originsOf(options).allows(origin),
    );
  const none = { named: [], rules: undefined };
  expect(mayCall({ ...none, hasKeys: () => false })).toEqual(["http://localhost:3000"]);
  expect(mayCall({ ...none, hasKeys: () => true })).toHaveLength(3);
  expect(mayCall({ ...none, rules, hasKeys: () => true })).toEqual(["https://app.example"]);
  expect(mayCall({ named: ["loopback"], rules, hasKeys: () => true })).toEqual(["http://localhost:3000"]);
  expect(mayCall({ ...none, rules: corsRulesOf({ max_age: 5 }), hasKeys: () => false })).toEqual([
    "http://localhost:3000",
  ]);
});
