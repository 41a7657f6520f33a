import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Results } from "../results.ts";
import { drawRunsPerSecond } from "./runs-per-second.ts";
import { drawTurns } from "./turns.ts";

/** The charts by file name; undefined if the results lack their figures. */
export const CHARTS: Readonly<Record<string, (results: Results) => string | undefined>> = {
  "runs-per-second.svg": drawRunsPerSecond,
  "turns.svg": drawTurns,
};

/**
 * Writes the charts for which the results have figures. Returns the files.
 * @param folder must exist
 */
export const drawCharts = async (results: Results, folder: string): Promise<string[]> => {
  const files: string[] = [];
  for (const [name, draw] of Object.entries(CHARTS)) {
    const svg = draw(results);
    if (svg === undefined) continue;
    const file = join(folder, name);
    await writeFile(file, svg);
    files.push(file);
  }
  return files;
};
