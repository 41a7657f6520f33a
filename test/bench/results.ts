import { readFile, writeFile } from "node:fs/promises";
import { z } from "zod";

/** The contenders: this server, the bare library (without a saver, in memory, official Postgres saver), a peer. */
export const CONTENDERS = ["threadloom", "none", "memory", "official", "peer"] as const;
export const contenderSchema = z.enum(CONTENDERS);
export type ContenderName = z.infer<typeof contenderSchema>;

const figureSchema = z.object({
  scenario: z.string(),
  /** One line; unique within its scenario. */
  label: z.string(),
  unit: z.string(),
  better: z.enum(["more", "less"]),
  /** The criterion of the issue or design, as text. */
  wanted: z.string().optional(),
  /** One value per repeat. */
  values: z.partialRecord(contenderSchema, z.array(z.number())),
});

/** The change of a value as a conversation gets longer. */
const seriesSchema = z.object({
  scenario: z.string(),
  label: z.string(),
  unit: z.string(),
  /** The number of the turn, counted from 1, and the value there. */
  points: z.partialRecord(contenderSchema, z.array(z.tuple([z.number(), z.number()]))),
});

const machineSchema = z.object({
  /** Of the measurement, as YYYY-MM-DD. */
  date: z.string(),
  commit: z.string(),
  processor: z.string(),
  cores: z.number(),
  memoryGiB: z.number(),
  system: z.string(),
  node: z.string(),
  postgres: z.string(),
  /** Settings of the database that decide the cost of a commit. */
  settings: z.record(z.string(), z.string()),
  /** Processes waiting for a core in the minute before the start: more than a few distort the figures. Left out if not recorded. */
  loadBefore: z.number().optional(),
});

export const resultsSchema = z.object({
  command: z.string(),
  machine: machineSchema,
  /** A handwritten remark on the measurement, as sentences. */
  note: z.string().optional(),
  repeats: z.number(),
  figures: z.array(figureSchema),
  series: z.array(seriesSchema),
});

export type Machine = z.infer<typeof machineSchema>;
export type Figure = z.infer<typeof figureSchema>;
export type FigureDescription = Omit<Figure, "scenario" | "values">;
export type Series = z.infer<typeof seriesSchema>;
export type Results = z.infer<typeof resultsSchema>;

/** Microseconds: further digits are noise that makes the file long. */
const rounded = (value: number): number => Math.round(value * 1000) / 1000;

/** Values that are not numbers (a median of nothing) are left out, because JSON can't express them. */
const toWritten = (_key: string, value: unknown): unknown =>
  Array.isArray(value)
    ? value
        .filter((item) => typeof item !== "number" || Number.isFinite(item))
        .map((item: unknown) => (typeof item === "number" ? rounded(item) : item))
    : value;

export const writeResults = (file: string, results: Results): Promise<void> =>
  writeFile(file, `${JSON.stringify(results, toWritten, 2)}\n`);

/** @throws an Error with one sentence if the file can't be read or was not written by `writeResults` */
export const readResults = async (file: string): Promise<Results> => {
  const text = await readFile(file, "utf8").catch((cause: Error) => {
    throw new Error(`${file} can't be read: ${cause.message}`);
  });
  let written: unknown;
  try {
    written = JSON.parse(text);
  } catch (cause) {
    throw new Error(`${file} is no JSON: ${(cause as Error).message}`);
  }
  const { success, data, error } = resultsSchema.safeParse(written);
  if (!success)
    throw new Error(
      `${file} holds no results of the benchmark: ${z.prettifyError(error).replaceAll("\n", " ")}`,
    );
  return data;
};
