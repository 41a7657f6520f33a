/** The key that LangGraph writes an `Overwrite` under: a value that goes past the reducer of its field. */
const OVERWRITE = "__overwrite__";

const valueOf = (written: unknown): unknown => {
  if (typeof written !== "object" || written === null) return written;
  const [key, ...others] = Object.keys(written);
  return key === OVERWRITE && others.length === 0 ? (written as Record<string, unknown>)[OVERWRITE] : written;
};

/** What a node has written, as a person wrote it: the values themselves, whether or not they go past reducers. */
export const withoutOverwrites = (written: unknown): unknown =>
  typeof written !== "object" || written === null || Array.isArray(written)
    ? written
    : Object.fromEntries(Object.entries(written).map(([field, value]) => [field, valueOf(value)]));
