import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "../compatibility/document.ts";
import { feature } from "../compatibility/feature.ts";
import { startTestServer, type TestServer } from "../helpers/app.ts";
import { differencesFromContract } from "./comparison.ts";
import { operations, type OpenApi } from "./contract.ts";
import { DESCRIPTION_DIFFERENCES } from "./description-differences.ts";
import { NOT_YET } from "./differences.ts";

/** This server's description of itself against the published contract. */

const TABLE = "Description of the API (`/openapi.json`)";

let server: TestServer;
let lines: string[];
beforeAll(async () => {
  server = await startTestServer();
  lines = differencesFromContract((await server.client.get("/openapi.json")).body as OpenApi);
});
afterAll(() => server.close());

/** An operation that is not implemented is not described either. */
const notYet = operations
  .filter(({ path }) => NOT_YET.some(({ pattern }) => pattern.test(path)))
  .map(({ name }) => `${name}: is not there`);

feature(
  {
    table: TABLE,
    row: "paths, parameters, fields, which of them are required, what values they may have, and statuses, apart from those below",
    column: "as in the contract",
  },
  () => {
    const unexplained = lines.filter(
      (line) => !notYet.includes(line) && !DESCRIPTION_DIFFERENCES.some((known) => known.lines.test(line)),
    );
    expect(unexplained).toEqual([]);
    expect(lines.filter((line) => notYet.includes(line))).toEqual(notYet);
  },
);

for (const { what, lines: pattern, because } of DESCRIPTION_DIFFERENCES) {
  feature({ table: TABLE, row: what, column: "as in the contract", differs: because }, () => {
    expect(lines.filter((line) => pattern.test(line))).not.toEqual([]);
  });
}

test("docs/compatibility.md has every operation of the contract once", () => {
  const document = readFileSync(new URL("../../docs/compatibility.md", import.meta.url), "utf8");
  const tables = parse(document).filter(({ name }) => name.startsWith("Operations: "));
  const shown = tables.flatMap(({ rows }) => [...rows.keys()]);
  expect(shown.sort()).toEqual(operations.map(({ name }) => name).sort());
});
