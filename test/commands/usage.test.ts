import { expect, test } from "vitest";
import { commandOf } from "../helpers/command-process.ts";
import { aProject, fixture } from "../helpers/project.ts";

test.each([
  [["start", "--prot", "1"], {}, 2, "threadloom start: unknown option '--prot'\n(Did you mean --port?)"],
  [["start", "graph.ts"], {}, 2, "too many arguments"],
  [["start", "--port", "abc"], {}, 2, "--port must be"],
  [["dev", "--wrong"], {}, 2, "unknown option '--wrong'"],
  [["dev", "--port", "abc"], {}, 2, "--port must be"],
  [["start"], { PORT: "abc" }, 1, "PORT must be"],
])("%j with %j ends with %i", async (argv, environment, code, sentence) => {
  const project = await aProject({
    "langgraph.json": { graphs: { counter: `${fixture("counter.ts")}:graph` } },
  });
  const ended = await commandOf(argv, { cwd: project.path("."), environment });
  expect(ended.stderr).toContain(sentence);
  expect(ended.code).toBe(code);
  expect(ended.stderr).not.toMatch(/\n\s+at /);
});
