import { readFile } from "node:fs/promises";

/** The message names the path and, if known, the line. */
export class JsonFileError extends Error {
  override readonly name = "JsonFileError";

  constructor(
    message: string,
    readonly kind: "unreadable" | "missing" | "not JSON",
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** Node names the place of most faults. */
const placeOf = (json: string, message: string): string => {
  const [, position] = / at position (\d+)/.exec(message) ?? [];
  if (position === undefined) return "";
  const lines = json.slice(0, Number(position)).split("\n");
  return `:${lines.length}:${(lines.at(-1) ?? "").length + 1}`;
};

/**
 * Accepts a byte order mark.
 * @throws JsonFileError
 */
export const readJsonFile = async (path: string): Promise<unknown> => {
  const text = await readFile(path, "utf8").catch((cause: NodeJS.ErrnoException) => {
    if (cause.code === "ENOENT") throw new JsonFileError(`There is no ${path}.`, "missing", { cause });
    throw new JsonFileError(`${path} can't be read: ${cause.name}: ${cause.message}.`, "unreadable", {
      cause,
    });
  });
  const json = text.replace(/^\uFEFF/, "");
  try {
    return JSON.parse(json) as unknown;
  } catch (cause) {
    const { message } = cause as Error;
    const reason = message.replace(/ in JSON at position .*$/, "");
    const text = `${path}${placeOf(json, message)} is not JSON: ${reason}.`;
    throw new JsonFileError(text, "not JSON", { cause });
  }
};
