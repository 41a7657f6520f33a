/** LangGraph's key for a value that bypasses the reducer of its field. */
const OVERWRITE = "__overwrite__";

const valueOf = (written: unknown): unknown => {
  if (typeof written !== "object" || written === null) return written;
  const [key, ...others] = Object.keys(written);
  return key === OVERWRITE && others.length === 0 ? (written as Record<string, unknown>)[OVERWRITE] : written;
};

export const withoutOverwrites = (written: unknown): unknown =>
  typeof written !== "object" || written === null || Array.isArray(written)
    ? written
    : Object.fromEntries(Object.entries(written).map(([field, value]) => [field, valueOf(value)]));
