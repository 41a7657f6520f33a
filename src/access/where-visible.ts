import type { RawBuilder, SqlBool } from "kysely";
import { sqlOf } from "../platform/database/queries.ts";
import type { Visibility, Within } from "./visibility.ts";

/** A visibility as a Kysely `where` condition. For raw statements use `Visibility.on`. */
export const whereVisible = (
  visibility: Visibility,
  metadata: string,
  within?: Within,
): RawBuilder<SqlBool> => sqlOf(visibility.on(metadata, within));
