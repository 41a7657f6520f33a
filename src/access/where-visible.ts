import { sql, type RawBuilder, type SqlBool } from "kysely";
import type { Visibility, Within } from "./visibility.ts";

const EVERYTHING = sql<SqlBool>`true`;

/** The condition of a visibility for the `where` of a Kysely query; see `Visibility.condition`, for raw statements. */
export const whereVisible = (
  visibility: Visibility,
  metadata: string,
  within?: Within,
): RawBuilder<SqlBool> => {
  const pieces = visibility.pieces(metadata, within);
  if (pieces === undefined) return EVERYTHING;
  return sql<SqlBool>(pieces.texts as unknown as TemplateStringsArray, ...pieces.values);
};
