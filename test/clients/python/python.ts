import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const FOLDER = fileURLToPath(new URL("./", import.meta.url));
/** As in main.py. */
const MODULE_IS_MISSING = 3;

/** The titles in a file of scenarios, read as text because Python may be missing. */
export const rowsOf = (file: string): string[] =>
  [...readFileSync(`${FOLDER}${file}.py`, "utf8").matchAll(/^@scenario\("([^"]+)"\)$/gm)].map(
    ([, row]) => row ?? "",
  );

export interface PythonOutcome {
  error: string | null;
  skipped: string | null;
}

export interface PythonResult {
  reason?: string;
  outcomes: ReadonlyMap<string, PythonOutcome>;
  output: string;
}

/**
 * Runs the scenarios of a file for one column against a server, with `python3` (or PYTHON) and the packages in PYTHON_PACKAGES:
 * CONTRIBUTING.md says how to fill that folder.
 */
export const runPython = async (file: string, column: string, url: string): Promise<PythonResult> => {
  const packages = process.env.PYTHON_PACKAGES;
  const child = spawn(process.env.PYTHON ?? "python3", [`${FOLDER}main.py`, file, column, url], {
    env: {
      PATH: process.env.PATH,
      HOME: process.env.HOME,
      PYTHONDONTWRITEBYTECODE: "1",
      ...(packages === undefined ? {} : { PYTHONPATH: packages }),
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stderr.on("data", (chunk: Buffer) => (output += chunk.toString()));
  const outcomes = new Map<string, PythonOutcome>();
  const ended = new Promise<number | string>((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("close", (code, signal) => resolve(code ?? signal ?? "?"));
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const { row, ...outcome } = JSON.parse(line) as { row: string } & PythonOutcome;
    outcomes.set(row, outcome);
  }
  const end = await ended;
  if (typeof end === "string") return { reason: `there is no python3 (${end})`, outcomes, output };
  if (end === MODULE_IS_MISSING) return { reason: `python3 has no ${output}`, outcomes, output };
  if (end !== 0) throw new Error(`python3 ended with ${end}:\n${output}`);
  return { outcomes, output };
};
