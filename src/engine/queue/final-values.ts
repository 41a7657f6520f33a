/** Bytes kept for a webhook. A receiver reads larger values from the thread. */
const BYTES_AT_MOST = 4_000_000;

const LINE_BREAK = Buffer.from("\n");
const TOO_LARGE = Buffer.from("null");

export interface FinalValues {
  /** UTF-8 JSON: the values on the first line, pending interrupts on the second. Null: neither. */
  values: Buffer | null;
  omitted: boolean;
}

/** Undefined if too large. `length` avoids encoding a huge text: a character takes at least one byte. */
const bounded = (text: string, bytesAtMost: number): Buffer | undefined => {
  if (text.length > bytesAtMost) return undefined;
  const bytes = Buffer.from(text, "utf8");
  return bytes.length > bytesAtMost ? undefined : bytes;
};

/** Both are JSON without line breaks. `interrupts`: a list; undefined if the run was not interrupted. */
export const toFinalValues = (json: string | undefined, interrupts?: string): FinalValues => {
  const asked = interrupts === undefined ? undefined : (bounded(interrupts, BYTES_AT_MOST) ?? TOO_LARGE);
  const values = json === undefined ? undefined : bounded(json, BYTES_AT_MOST - (asked?.length ?? 0));
  const omitted = json !== undefined && values === undefined;
  if (asked === undefined) return { values: values ?? null, omitted };
  return { values: Buffer.concat([values ?? Buffer.alloc(0), LINE_BREAK, asked]), omitted };
};

/** `interrupts` is the JSON text `null` if the interrupts were too large. */
export const fromFinalValues = (
  stored: Buffer | null,
): { values: string | undefined; interrupts: string | undefined } => {
  const [values = "", interrupts] = stored?.toString("utf8").split("\n") ?? [];
  return { values: values === "" ? undefined : values, interrupts };
};
