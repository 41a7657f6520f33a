import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { apiOf } from "../helpers/api.ts";
import { aProject } from "../helpers/project.ts";

const GRAPH = `
  import { Annotation, END, START, StateGraph } from "@langchain/langgraph";
  import { greeting } from "@/texts/greeting";

  const State = Annotation.Root({ text: Annotation<string> });
  export const graph = new StateGraph(State)
    .addNode("greet", () => ({ text: greeting }))
    .addEdge(START, "greet")
    .addEdge("greet", END)
    .compile();
`;

test.each([
  ["an ES module", { type: "module" }],
  ["CommonJS", {}],
])("paths of the tsconfig.json beside langgraph.json are resolved, in %s", async (_kind, packageJson) => {
  const project = await aProject({
    "langgraph.json": { graphs: { greeter: "./src/agents/greeter.ts:graph" } },
    "package.json": packageJson,
    "tsconfig.json": '{ "compilerOptions": { "baseUrl": ".", "paths": { "@/*": ["./src/*"] } } } // ours',
    "src/agents/greeter.ts": GRAPH,
    "src/texts/greeting.ts": 'export const greeting: string = "found by its path";',
  });
  await project.linkPackages();
  const server = await project.start();
  const { body } = await apiOf({ url: await server.address() }).post("/runs/wait", {
    assistant_id: "greeter",
    input: { text: "" },
  });
  expect(body).toEqual({ text: "found by its path" });
});

test.each([
  ["18.20.4", false],
  ["20.11.1", false],
  ["20.12.0", true],
  ["24.0.0", true],
])(
  "Node %s is new enough: %s, which is checked before any file that an old version can't read",
  async (version, fits) => {
    const entry = fileURLToPath(new URL("../../bin/threadloom.js", import.meta.url));
    const pretence = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } })`;
    const options = ["--import", `data:text/javascript,${encodeURIComponent(pretence)}`];
    const started = promisify(execFile)(process.execPath, [...options, entry, "--version"]).then(
      ({ stdout }) => ({ stdout }),
      ({ code, stderr }: { code: number; stderr: string }) => ({ code, stderr }),
    );
    expect(await started).toEqual(
      fits
        ? { stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) as string }
        : {
            code: 1,
            stderr: expect.stringMatching(
              `^threadloom: Node ${version} is too old: version 20.12 or newer is needed. Get one from [^\n]*\n$`,
            ) as string,
          },
    );
  },
);
