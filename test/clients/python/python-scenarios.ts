import { afterAll, beforeAll, describe } from "vitest";
import { feature } from "../../compatibility/feature.ts";
import { startTestServer, type TestServer } from "../../helpers/app.ts";
import { CLIENT_GRAPHS } from "../graphs/graphs.ts";
import { rowsOf, runPython, type PythonResult } from "./python.ts";

/** The scenarios of a Python file, each a cell of docs/compatibility.md. `column` is for example "async, SSE". */
export const describePython = (table: string, file: string, column: string): void => {
  describe(`${file}.py, ${column}`, () => {
    let server: TestServer;
    let result: PythonResult;
    beforeAll(async () => {
      server = await startTestServer({ graphConfigFile: CLIENT_GRAPHS });
      result = await runPython(file, column, server.url);
      if (result.reason !== undefined)
        process.stderr.write(
          `Skipped, the tests of the Python SDK: ${result.reason} (see CONTRIBUTING.md).\n`,
        );
    }, 200_000);
    afterAll(() => server?.close());

    for (const row of rowsOf(file))
      feature({ table, row, column: `Python, ${column}` }, ({ skip }) => {
        if (result.reason !== undefined) skip(result.reason);
        const outcome = result.outcomes.get(row);
        if (outcome === undefined) throw new Error(`This was not run. ${result.output}`);
        if (outcome.skipped !== null) skip(outcome.skipped);
        if (outcome.error !== null) throw new Error(outcome.error);
      });
  });
};
