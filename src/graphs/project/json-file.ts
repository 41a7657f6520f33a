import { readFile } from "node:fs/promises";

/** A file can't be read, or is not JSON. The message is a sentence with its path, and the line where there is one. */
export class JsonFileError extends Error {
  override readonly name = "JsonFileError";

  constructor(
    message: string,
    readonly kind: "unreadable" | "missing" | "not JSON" | "duplicate key",
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

interface Fault {
  text: string;
  location: { line: number; column: number; lineText: string } | null;
}

/** Node tells the position in characters, or none; esbuild line and column, and what it is about. */
const faultIn = async (text: string): Promise<Fault | undefined> => {
  const { transformSync } = await import("esbuild");
  try {
    transformSync(text, { loader: "json", logLevel: "silent" });
    return undefined;
  } catch (error) {
    return (error as { errors?: Fault[] }).errors?.[0];
  }
};

/** A string, or what opens, closes or names a member. */
const TOKEN = /"(?:[^"\\]+|\\.)*"|[{}[\]:]/g;

interface Duplicate {
  key: string;
  /** Of the second one, from 1. */
  line: number;
  column: number;
}

/** The first key that an object of this text has twice. The text has to be valid JSON. */
const duplicateIn = (json: string): Duplicate | undefined => {
  const open: Set<string>[] = [];
  let last = { token: "", index: 0 };
  for (const { 0: token, index } of json.matchAll(TOKEN)) {
    if (token === "{" || token === "[") open.push(new Set());
    else if (token === "}" || token === "]") open.pop();
    else if (token === ":") {
      const key = JSON.parse(last.token) as string;
      const keys = open.at(-1);
      if (keys?.has(key) === true) {
        const before = json.slice(0, last.index).split(/\r?\n/);
        return { key, line: before.length, column: [...(before.at(-1) ?? "")].length + 1 };
      }
      keys?.add(key);
    }
    last = { token, index };
  }
  return undefined;
};

/**
 * What a JSON file of the project holds; a byte order mark, which some editors write, is none of it.
 * @param options.uniqueKeys refuses an object with the same key twice, of which `JSON.parse` silently takes the last
 * @throws JsonFileError
 */
export const readJsonFile = async (path: string, { uniqueKeys = false } = {}): Promise<unknown> => {
  const text = await readFile(path, "utf8").catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === "ENOENT") throw new JsonFileError(`There is no ${path}.`, "missing", { cause });
    throw new JsonFileError(`${path} can't be read: ${cause.name}: ${cause.message}.`, "unreadable", {
      cause,
    });
  });
  const json = text.replace(/^\uFEFF/, "");
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (cause) {
    const fault = await faultIn(json);
    const { line, column, lineText } = fault?.location ?? {};
    // Its columns are bytes, from 0.
    const before = Buffer.from(lineText ?? "").subarray(0, column);
    const place = line === undefined ? "" : `:${line}:${[...before.toString()].length + 1}`;
    const reason = fault?.text ?? (cause as Error).message;
    throw new JsonFileError(`${path}${place} is not JSON: ${reason}.`, "not JSON", { cause });
  }
  const duplicate = uniqueKeys ? duplicateIn(json) : undefined;
  if (duplicate === undefined) return value;
  const { key, line, column } = duplicate;
  throw new JsonFileError(
    `${path}:${line}:${column} repeats the key ${JSON.stringify(key)} of the same object: remove or rename one of the two.`,
    "duplicate key",
  );
};
