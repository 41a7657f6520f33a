import { dirname } from "node:path";
import { afterEach, expect, test } from "vitest";
import type { Check } from "../../src/cli/doctor/checks.ts";
import { findPgbouncer, openings, startPooler, type Pgbouncer } from "../platform/database/pgbouncer.ts";
import { commandHere } from "../helpers/command-here.ts";
import { aProject, fixture } from "../helpers/project.ts";

const program = await findPgbouncer();
const { keep, aDatabase, tidyUp } = openings();
afterEach(tidyUp);

/** The messages of doctor and of a start in this environment. */
const bothSay = async (environment: Record<string, string>) => {
  const project = await aProject({
    "langgraph.json": { graphs: { counter: `${fixture("counter.ts")}:graph` } },
  });
  await project.linkPackages();
  const { out, code } = await commandHere(["doctor", "--port", "0", "--json"], {
    cwd: dirname(project.path("langgraph.json")),
    environment,
  });
  const { checks } = JSON.parse(out) as { checks: Check[] };
  const check = checks.find(({ name }) => name === "Sessions");
  return { code, check, refusal: () => project.refusal([], environment) };
};

const aPooler = async (connectionString: string) =>
  (await keep(startPooler({ program: program as Pgbouncer, connectionString, poolSize: 5 })))
    .connectionString;

test.runIf(program !== undefined)(
  "through a pooler in transaction mode doctor fails with the message of the start",
  async () => {
    const { code, check, refusal } = await bothSay({ DATABASE_URL: await aPooler(await aDatabase()) });
    expect([code, check?.level]).toEqual([1, "fail"]);
    expect(await refusal()).toContain(check?.text);
  },
);

test.runIf(program !== undefined)(
  "with a direct address beside the pooler doctor checks both, and passes",
  async () => {
    const direct = await aDatabase();
    const environment = { DATABASE_URL: await aPooler(direct), DATABASE_DIRECT_URL: direct };
    const { code, check } = await bothSay(environment);
    expect([code, check?.level]).toEqual([0, "ok"]);
  },
);

test("a direct address of another database fails", async () => {
  const environment = { DATABASE_URL: await aDatabase(), DATABASE_DIRECT_URL: await aDatabase() };
  const { code, check } = await bothSay(environment);
  expect([code, check?.level]).toEqual([1, "fail"]);
  expect(check?.text).toContain("leads to another database than DATABASE_URL");
});
