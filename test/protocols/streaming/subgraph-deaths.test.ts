import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { newId } from "../../../src/platform/lib/ids.ts";
import { apiOf } from "../../helpers/api.ts";
import { startTestServer } from "../../helpers/app.ts";
import { endLeases, PATIENT_LEASES, PATIENT_LEASES_ENVIRONMENT } from "../../helpers/leases.ts";
import { query } from "../../helpers/query.ts";
import { spawnServer } from "../../helpers/server-process.ts";
import { closingFrames, isRoot, started, type Frame } from "./frames.ts";

const GRAPHS = fileURLToPath(new URL("graphs/langgraph.json", import.meta.url));

const isChild =
  (event: string) =>
  ({ params: { namespace, data } }: Frame): boolean =>
    namespace[0]?.startsWith("child:") === true && data["event"] === event;

const open = closingFrames(() => server);
let server: Awaited<ReturnType<typeof startTestServer>>;

test("a server dies after it stored a subgraph's values, and before it logged its end: the next attempt sends the end", async () => {
  // Answers, and executes nothing.
  server = await startTestServer({ graphConfigFile: GRAPHS, role: "api", ...PATIENT_LEASES });
  onTestFinished(() => server.close());
  const worker = async () => {
    const process = spawnServer(["--config", GRAPHS, "--port", "0"], {
      DATABASE_URL: server.connectionString,
      ...PATIENT_LEASES_ENVIRONMENT,
    });
    onTestFinished(() => process.kill());
    await process.address();
    return process;
  };
  const first = await worker();
  const threadId = newId();
  await started(server.url, threadId, { assistant_id: "dying-subgraph", input: { items: [] } });
  const before = await open(threadId, { channels: ["lifecycle"] });
  const { seq } = await before.until(isChild("completed"));
  await first.kill();
  await query(server, "delete from threadloom.run_events where thread_seq = $1", [seq]);
  await endLeases(server);
  await worker();
  const stream = await open(threadId, { channels: ["lifecycle"] });
  await stream.until(isRoot("completed"));
  const ofSubgraphs = stream.seen.filter(({ params }) => params.namespace.length > 0);
  expect(ofSubgraphs.map(({ params }) => [params.data["graph_name"], params.data["event"]])).toEqual([
    ["child", "started"],
    ["again", "started"],
    ["again", "completed"],
    ["child", "completed"],
  ]);
});

test("a graph process sends the end of a subgraph when its values can be read", async () => {
  server = await startTestServer({ graphConfigFile: GRAPHS, graphProcesses: 1 });
  onTestFinished(() => server.close());
  await query(
    server,
    `create function linger() returns trigger language plpgsql as
     $$ begin perform pg_sleep(0.1); return null; end $$;
     create trigger linger before insert on threadloom.checkpoints for each statement execute function linger()`,
  );
  const threadId = newId();
  const stream = await open(threadId, { channels: ["lifecycle"] });
  await started(server.url, threadId, { assistant_id: "last-subgraph", input: { items: [] } });
  await stream.until(isChild("completed"));
  expect((await apiOf(server).state(threadId)).values["items"]).toEqual(["first", "inner"]);
});
