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

interface Fault {
  text: string;
  location: { line: number; column: number; lineText: string } | null;
}

/** esbuild reports line and column; Node's error often does not. */
const faultIn = async (text: string): Promise<Fault | undefined> => {
  const { transformSync } = await import("esbuild");
  try {
    transformSync(text, { loader: "json", logLevel: "silent" });
    return undefined;
  } catch (error) {
    return (error as { errors?: Fault[] }).errors?.[0];
  }
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
    const fault = await faultIn(json);
    const { line, column, lineText } = fault?.location ?? {};
    // esbuild counts bytes, from 0.
    const before = Buffer.from(lineText ?? "").subarray(0, column);
    const place = line === undefined ? "" : `:${line}:${[...before.toString()].length + 1}`;
    const reason = fault?.text ?? (cause as Error).message;
    throw new JsonFileError(`${path}${place} is not JSON: ${reason}.`, "not JSON", { cause });
  }
};
