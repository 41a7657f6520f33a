import { afterAll, beforeAll, expect, test } from "vitest";
import { startAssistants } from "../helpers/parts.ts";

let server: Awaited<ReturnType<typeof startAssistants>>;
beforeAll(async () => {
  server = await startAssistants();
});
afterAll(async () => {
  await server.close();
});

interface Document {
  openapi: string;
  paths: Record<
    string,
    Record<string, { description?: string; responses: Record<string, { description?: string }> }>
  >;
  components: { schemas: Record<string, unknown> };
}

const read = async (): Promise<Document> => (await server.client.get("/openapi.json")).body as Document;

test("the description of the API is valid OpenAPI 3.1, with every reference resolved", async () => {
  const document = await read();
  expect(document.openapi).toBe("3.1.0");
  const text = JSON.stringify(document);
  for (const [, name] of text.matchAll(/"#\/components\/schemas\/([^"]+)"/g)) {
    expect(document.components.schemas).toHaveProperty([name!]);
  }
});

test("every named schema is used, and every answer is described", async () => {
  const document = await read();
  const text = JSON.stringify(document);
  for (const name of Object.keys(document.components.schemas)) {
    expect(text).toContain(`"#/components/schemas/${name}"`);
  }
  for (const [path, methods] of Object.entries(document.paths)) {
    for (const operation of Object.values(methods)) {
      for (const [status, { description }] of Object.entries(operation.responses)) {
        expect([path, status, description]).not.toEqual([path, status, "Default Response"]);
        expect(description).toBeTruthy();
      }
    }
  }
});

test("the reference page and its assets come from this server, and its policy allows nothing else", async () => {
  const page = await server.client.get("/docs");
  expect(page.status).toBe(200);
  const policy = page.headers["content-security-policy"]!;
  expect(policy).toContain("default-src 'self'");
  expect(policy).not.toMatch(/https?:|\*|upgrade-insecure-requests/);
  const links = [...page.text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link]) => link!);
  expect(links.length).toBeGreaterThan(4);
  for (const link of links) {
    expect(link).toMatch(/^\/docs\//);
    const asset = await server.client.get(link);
    expect([link, asset.status]).toEqual([link, 200]);
    if (link.endsWith(".css")) expect(asset.text).not.toMatch(/url\(["']?https?:|@import/);
  }
  const initializer = await server.client.get("/docs/static/swagger-initializer.js");
  expect(initializer.text).toContain("validatorUrl: null");
  expect((await server.client.get("/docs/json")).body).toEqual(await read());
});

test("the description of updating an assistant says that a new name alone removes its context", async () => {
  const document = await read();
  const { description } = document.paths["/assistants/{assistant_id}"]!["patch"]!;
  expect(description).toMatch(/without them the new version has neither/);
  const [, schema] = Object.entries(document.components.schemas).find(([name]) =>
    name.startsWith("AssistantPatch"),
  ) as [string, { properties: Record<string, { description?: string }> }];
  for (const field of ["config", "context"]) {
    expect(schema.properties[field]?.description).toMatch(/If the body omits it, the new version has none/);
  }
});
