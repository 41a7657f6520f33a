import type { Option } from "../../src/platform/config/option.ts";
import { DATABASE_OPTIONS } from "../../src/platform/config/options.ts";
import { ENCRYPTION_OPTIONS } from "../../src/platform/config/options.ts";
import { OBJECT_STORE_OPTIONS } from "../../src/platform/config/options.ts";
import { EXECUTION_OPTIONS } from "../../src/platform/config/run-options.ts";
import { LIMIT_OPTIONS } from "../../src/platform/config/run-options.ts";
import { OPTIONS } from "../../src/platform/config/options.ts";
import { WEBHOOK_OPTIONS } from "../../src/platform/config/options.ts";

/** A command in a section of a page, and its documented output. */
export interface Step {
  command: string;
  /** The text of the output block that follows; undefined: no output. */
  output: string | undefined;
  line: number;
}

interface Fence {
  language: string;
  text: string;
  /** Lines of the document from 0, without the fences. */
  from: number;
  to: number;
}

/** The output of a command is a block of this language, right after it. */
const OUTPUT = "text";

const fences = (document: string): Fence[] => {
  const found: Fence[] = [];
  const lines = document.split("\n");
  for (let index = 0; index < lines.length; index += 1) {
    const language = /^```(\w+)$/.exec(lines[index] ?? "")?.[1];
    if (language === undefined) continue;
    const to = lines.indexOf("```", index + 1);
    if (to < 0) throw new Error(`The block of line ${index + 1} has no end.`);
    found.push({ language, text: lines.slice(index + 1, to).join("\n"), from: index + 1, to });
    index = to;
  }
  return found;
};

/** The lines of a section, from its heading to the next heading of its rank or above. */
const sectionLines = (document: string, heading: string): { from: number; to: number } => {
  const lines = document.split("\n");
  const from = lines.indexOf(heading);
  if (from < 0) throw new Error(`The page has no section '${heading}'.`);
  const rank = /^#+/.exec(heading)?.[0].length ?? 1;
  const inFence = fences(document);
  const end = lines.findIndex(
    (line, index) =>
      index > from &&
      (/^(#+) /.exec(line)?.[1]?.length ?? Infinity) <= rank &&
      !inFence.some((fence) => fence.from <= index && index < fence.to),
  );
  return { from, to: end < 0 ? lines.length : end };
};

const commandFences = (
  document: string,
  heading: string,
  language: string,
): { command: Fence; output: Fence | undefined }[] => {
  const { from, to } = sectionLines(document, heading);
  const inside = fences(document).filter((fence) => fence.from > from && fence.to < to);
  return inside.flatMap((command, index) => {
    const next = inside[index + 1];
    return command.language === language
      ? [{ command, output: next?.language === OUTPUT ? next : undefined }]
      : [];
  });
};

/** The blocks of one language in a section, each with its output block. */
export const readSteps = (document: string, heading: string, language: string): Step[] =>
  commandFences(document, heading, language).map(({ command, output }) => ({
    command: command.text,
    output: output?.text,
    line: command.from + 1,
  }));

/** The document with other outputs for the same commands. */
export const withOutputs = (
  document: string,
  heading: string,
  language: string,
  outputs: readonly string[],
): string => {
  const lines = document.split("\n");
  const places = commandFences(document, heading, language).map(({ output }, index) => ({
    output,
    text: outputs[index] ?? "",
  }));
  // From the end, so that earlier line numbers stay valid.
  for (const { output, text } of places.reverse()) {
    if (output !== undefined) lines.splice(output.from, output.to - output.from, ...text.split("\n"));
  }
  return lines.join("\n");
};

/**
 * Replaces values that differ from run to run: ids by their number in order of appearance (so equal ids must appear in the same places),
 * times, and the width of a column of counts. One normalizer serves a whole walk.
 */
export const createNormalizer = (): ((text: string) => string) => {
  const numbers = new Map<string, number>();
  const numbered = (id: string): string => {
    if (!numbers.has(id)) numbers.set(id, numbers.size + 1);
    return `<id ${numbers.get(id)}>`;
  };
  return (text) =>
    text
      .replaceAll(/[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|\b[0-9a-f]{32}\b/g, numbered)
      .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)/g, "<time>")
      .replaceAll(/"timestamp":\d{13}/g, '"timestamp":<time>')
      .replaceAll(/^id: \d{5,}|"(?:seq|event_id)":"?\d+"?/gm, (place) => place.replace(/\d+/, "<place>"))
      .replaceAll(/^ +(?=\d+ event:)/gm, "")
      .trimEnd();
};

const code = (text: string): string => `\`${text}\``;

/** The options that most deployments set: they come first, and no group below repeats them. */
const COMMON: readonly string[] = [
  "port",
  "host",
  "databaseUrl",
  "apiKeys",
  "corsAllowOrigins",
  "jobsPerWorker",
  "graphProcesses",
  "encryptionKeys",
];
const GROUPS: Readonly<Record<string, object>> = {
  "### Database": DATABASE_OPTIONS,
  "### Encryption": ENCRYPTION_OPTIONS,
  "### Object store": OBJECT_STORE_OPTIONS,
  "### Runs": EXECUTION_OPTIONS,
  "### Limits": LIMIT_OPTIONS,
  "### Webhooks": WEBHOOK_OPTIONS,
};

const optionTable = (options: readonly Option<unknown>[]): string => {
  const rows = options.map((option) => [
    [...option.environment, ...(option.flag === undefined ? [] : [`--${option.flag}`])].map(code).join(", "),
    (option.default ?? "") === "" ? "" : code(option.default ?? ""),
    option.description,
  ]);
  return [["Name", "Default", "Meaning"], ["---", "---", "---"], ...rows]
    .map((cells) => `| ${cells.join(" | ")} |`)
    .join("\n");
};

/** The tables of the options by their headings in the page on configuration. */
export const configurationTables = (): Record<string, string> => {
  const names = Object.keys(OPTIONS).filter((name) => !COMMON.includes(name));
  const grouped = new Set(Object.values(GROUPS).flatMap(Object.keys));
  const groups = {
    "### Common options": COMMON,
    "### Server": names.filter((name) => !grouped.has(name)),
    ...Object.fromEntries(
      Object.entries(GROUPS).map(([heading, options]) => [heading, names.filter((name) => name in options)]),
    ),
  };
  const options: Readonly<Record<string, Option<unknown>>> = OPTIONS;
  return Object.fromEntries(
    Object.entries(groups).map(([heading, members]) => [
      heading,
      optionTable(members.flatMap((name) => options[name] ?? [])),
    ]),
  );
};

/** The first table of a section; the document with a new table, if one is given. */
export const sectionTable = (
  document: string,
  heading: string,
  replacement?: string,
): { table: string; document: string } => {
  const lines = document.split("\n");
  const { from, to } = sectionLines(document, heading);
  const first = lines.findIndex((line, index) => index > from && index < to && line.startsWith("|"));
  if (first < 0) throw new Error(`The section '${heading}' has no table.`);
  let last = first;
  while (lines[last + 1]?.startsWith("|")) last += 1;
  const table = lines.slice(first, last + 1).join("\n");
  if (replacement !== undefined) lines.splice(first, last + 1 - first, ...replacement.split("\n"));
  return { table, document: lines.join("\n") };
};
