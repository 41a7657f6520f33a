import supertest from "supertest";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { createAuthorize } from "../../src/access/authorize.ts";
import { createAssistantRoutes } from "../../src/api/assistants/routes.ts";
import { createAssistantService } from "../../src/api/assistants/service.ts";
import { openDatabase, type Database } from "../../src/platform/database/database.ts";
import { unavailable } from "../../src/platform/domain/errors.ts";
import { loadGraphs, type Graphs } from "../../src/graphs/graphs.ts";
import { freshDatabase, type FreshDatabase } from "../helpers/database.ts";
import { aBareApp, FIXTURE_GRAPHS, listeningLogger } from "../helpers/parts.ts";
import { openTestDatabase } from "../helpers/test-database.ts";

/** Refusals of the database, as callers see them. The statements run on a real one. */

const STATEMENTS: Record<string, { text: string; values: unknown[] }> = {
  nul: { text: "select $1::jsonb", values: ['{"a":"\\u0000"}'] },
  "nul-in-text": { text: "select $1::text", values: ["a\0b"] },
  surrogate: { text: "select $1::jsonb", values: ['"\\ud800"'] },
  "too-large": {
    text: "insert into threadloom.assistants (assistant_id, graph_id, name, version) values (gen_random_uuid(), $1, '', 1)",
    values: [],
  },
  "our-fault": { text: "select nonsense", values: [] },
  "our-wrong-type": { text: "select $1::uuid", values: ["no-uuid"] },
};

let fresh: FreshDatabase;
let database: Database;
let graphs: Graphs;
let server: Awaited<ReturnType<typeof aBareApp>>;
beforeAll(async () => {
  fresh = await freshDatabase();
  const { logger } = listeningLogger();
  const options = { poolSize: 2, applicationName: "threadloom test", preparedStatements: true, logger };
  database = openDatabase({ connectionString: fresh.connectionString, ...options });
  graphs = await loadGraphs({ configPath: FIXTURE_GRAPHS, logger });
  // Random digits: repeated text is compressed and would fit.
  STATEMENTS["too-large"]!.values = [
    Array.from({ length: 20_000 }, () => Math.random().toString(36)[2]).join(""),
  ];
  server = await aBareApp({
    routes: [
      async (app) => {
        app.get<{ Params: { name: string } }>("/run/:name", async (request) => {
          const { text, values } = STATEMENTS[request.params.name]!;
          return await database.query(text, values);
        });
        app.get<{ Params: { state: string } }>(
          "/raise/:state",
          async (request) =>
            await database.query(
              `do $$ begin raise exception 'not now' using errcode = '${request.params.state}'; end $$`,
            ),
        );
        app.get("/die", async () => await database.query("select pg_terminate_backend(pg_backend_pid())"));
      },
    ],
  });
});
afterAll(async () => {
  await server.app.close();
  await graphs.close();
  await database.close();
  await fresh.drop();
});

test.each([
  ["nul", 422, "The request holds text that can't be stored (a NUL character)."],
  ["nul-in-text", 422, "The request holds text that can't be stored (a NUL character, or no UTF-8)."],
  ["surrogate", 422, "The request holds text that can't be stored (half a surrogate pair)."],
  ["too-large", 422, "The request holds a value that is too large to be stored."],
  ["our-fault", 500, "The server could not answer this request; its log says why."],
  ["our-wrong-type", 500, "The server could not answer this request; its log says why."],
])(
  "a value that passes validation and fails in the database causes no server error: %s",
  async (name, status, detail) => {
    const answer = await server.client.get(`/run/${name}`);
    expect(answer.body).toEqual({ detail });
    expect(answer.status).toBe(status);
  },
);

test("a connection that breaks during a statement causes a 503 with Retry-After, and the next one works", async () => {
  const answer = await server.client.get("/die");
  expect(answer.status).toBe(503);
  expect(answer.headers["retry-after"]).toBe("1");
  expect(answer.body).toEqual({ detail: "The database can't be used at the moment." });
  expect((await server.client.get("/run/our-fault")).status).toBe(500);
});

test.each([
  ["40P01", "Others changed the same at the same moment; try again."],
  ["40001", "Others changed the same at the same moment; try again."],
  ["25006", "The database can't be used at the moment."],
  ["53300", "The database can't be used at the moment."],
])(
  "a temporary error causes a 503 with Retry-After, and is not logged as a server error: %s",
  async (state, detail) => {
    const answer = await server.client.get(`/raise/${state}`);
    expect(answer.body).toEqual({ detail });
    expect(answer.status).toBe(503);
    expect(answer.headers["retry-after"]).toBe("1");
  },
);

test("without a database every request for an assistant gets a 503, not a 500", async () => {
  const away = openTestDatabase("postgres://nobody@127.0.0.1:1/none", { poolSize: 2 });
  const service = createAssistantService({
    database: away,
    authorize: createAuthorize(),
    graphs,
    deleteThreads: async () => undefined,
  });
  const { app } = await aBareApp({ routes: [createAssistantRoutes(service)] });
  try {
    await app.listen({ host: "127.0.0.1", port: 0 });
    const client = supertest(app.server);
    const answers = await Promise.all([
      client.get("/assistants/agent"),
      client.post("/assistants").send({ graph_id: "agent" }),
      client.patch("/assistants/agent").send({ context: {} }),
      client.post("/assistants/search"),
      client.post("/assistants/count"),
      client.delete("/assistants/agent"),
    ]);
    expect(answers.map(({ status }) => status)).toEqual([503, 503, 503, 503, 503, 503]);
  } finally {
    await app.close();
    await away.close();
  }
});

test("the server's own refusal, for example while it starts, is logged with its message and without a stack", async () => {
  const starting = await aBareApp({
    routes: [
      async (app) => {
        app.get("/starting", () => {
          throw unavailable("This server is starting or stopping.");
        });
        app.get("/away", () => {
          throw unavailable("The database does not answer.", new Error("connect ECONNREFUSED"));
        });
      },
    ],
  });
  onTestFinished(() => starting.app.close());
  for (const path of ["/starting", "/away"]) expect((await starting.client.get(path)).status).toBe(503);
  const logged = starting.lines
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ level }) => level === 40);
  expect(logged).toMatchObject([
    { reason: "This server is starting or stopping." },
    { err: { message: expect.stringContaining("The database does not answer.") as string } },
  ]);
  expect(logged[0]).not.toHaveProperty("err");
});
