import { writeFile } from "node:fs/promises";
import { expect, onTestFinished, test, vi } from "vitest";
import { findPostmaster } from "../../../src/platform/database/embedded/embedded.ts";
import { findPlace } from "../../../src/platform/database/embedded/place.ts";
import { aProject } from "../../helpers/project.ts";
import { temporaryFolder } from "../../helpers/temporary-folder.ts";
import { agentSource, developed, GRAPHS, PATIENCE, SECONDS_AT_MOST } from "./dev-project.ts";

vi.setConfig({ testTimeout: SECONDS_AT_MOST * 1_000 });

/** Changes that a running server can't apply: it restarts on the same data. */

const APP = (text: string): string => `
  export const app = {
    fetch: ({ url }) => url.endsWith("/own") ? new Response(${JSON.stringify(text)}) : new Response(null, { status: 404 }),
  };`;

test("a change of http restarts the server on the embedded database, which stops with the command", async () => {
  const folder = await temporaryFolder();
  onTestFinished(() => folder.remove());
  const { edit, server, client, untilLogged } = await developed({}, ["--data", folder.dataFolder], {
    DATABASE_URL: "",
  });
  const postmaster = async () => (await findPostmaster(await findPlace(folder.dataFolder)))?.pid;
  const thread = await client.threads.create({ metadata: { kept: "yes" } });
  await edit("langgraph.json", { graphs: GRAPHS, http: { app: "./src/app.ts:app" } });
  await untilLogged("not reloaded");
  await edit("src/app.ts", APP("app1"));
  await untilLogged("watching the graphs", 2);
  const addresses = [...server.output().matchAll(/listening on (http[^"]+)"/g)].map(
    ([, address]) => address!,
  );
  const found = await fetch(`${addresses.at(-1)}/threads/${thread.thread_id}`);
  expect(await found.json()).toMatchObject({ metadata: { kept: "yes" } });
  await edit("src/app.ts", "export const app = ;");
  await untilLogged("not reloaded", 2);
  expect(await (await fetch(new URL("/own", addresses.at(-1)))).text()).toBe("app1");
  await edit("src/app.ts", APP("app2"));
  await untilLogged("watching the graphs", 3);
  server.child.kill("SIGINT");
  expect(await server.exit()).toBe(0);
  expect(await postmaster()).toBeUndefined();
});

test("dev waits for a project that can't be served yet; once served, dev ends when its output has no reader", async () => {
  const project = await aProject({
    "package.json": { type: "module" },
    "langgraph.json": { graphs: GRAPHS },
    "tsconfig.json": { extends: "./tsconfig.base.json" },
    "tsconfig.base.json": { extends: "./tsconfig.paths" },
    "tsconfig.paths.json": { compilerOptions: { paths: { "@/*": ["./sources/*"] } } },
    "src/agent.ts": agentSource("code1"),
    "src/word.ts": 'export const word = "word1";',
    "src/data.json": { word: "data1" },
  });
  await project.linkPackages();
  const server = await project.develop();
  await vi.waitFor(() => expect(server.output()).toContain("waiting for a change"), PATIENCE);
  // Written into a base of a base.
  const paths = { compilerOptions: { paths: { "@/*": ["./src/*"] } } };
  await writeFile(project.path("tsconfig.paths.json"), JSON.stringify(paths));
  const response = await fetch(`${await server.address()}/ok`);
  expect(response.status).toBe(200);
  await vi.waitFor(() => expect(server.output()).toContain("watching the graphs"), PATIENCE);
  server.child.stdout?.destroy();
  await writeFile(project.path("src/agent.ts"), agentSource("code2"));
  expect(await server.exit()).toBe(0);
});
