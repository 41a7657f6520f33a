import { afterAll, beforeAll } from "vitest";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { IS_ENCRYPTED } from "../helpers/encryption.ts";
import { testOperations } from "./answers.ts";
import { wireOf } from "./wire.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server.close());

const wire = wireOf(() => server.url);
const { send } = wire;
const anItem = async (): Promise<void> => {
  await wire.must("PUT /store/items", { namespace: ["users", "a"], key: "likes", value: { colour: "blue" } });
};

testOperations("Store", wire, {
  "PUT /store/items": {
    204: () => send("PUT /store/items", { namespace: ["a"], key: "b", value: {}, index: false, ttl: 60 }),
    422: () => send("PUT /store/items", { namespace: ["a"], key: "b" }),
  },
  "DELETE /store/items": {
    204: () => send("DELETE /store/items", { namespace: ["a"], key: "b" }),
    422: () => send("DELETE /store/items", { namespace: ["a"] }),
  },
  "GET /store/items": {
    200: async () => {
      await anItem();
      return send("GET /store/items?namespace=users.a&key=likes");
    },
    400: () => send("GET /store/items?namespace=users..a&key=likes"),
    422: () => send("GET /store/items?namespace=users.a"),
  },
  "POST /store/items/search": {
    200: async () => {
      await anItem();
      return send("POST /store/items/search", {
        namespace_prefix: ["users"],
        // Encrypted values can't be searched.
        ...(IS_ENCRYPTED ? {} : { filter: { colour: "blue" } }),
      });
    },
    422: () => send("POST /store/items/search", { limit: "many" }),
  },
  "POST /store/namespaces": {
    200: async () => {
      await anItem();
      return send("POST /store/namespaces", { prefix: ["users"], max_depth: 1 });
    },
    422: () => send("POST /store/namespaces", { max_depth: "deep" }),
  },
});
