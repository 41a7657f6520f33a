import type pg from "pg";
import { statement } from "./statement.ts";

const HAS_TABLE = statement(
  { table: "text" },
  (sql) => `select to_regclass(${sql.table}) is not null as found`,
);

export const hasTable = async (client: pg.Client, schema: string, table: string): Promise<boolean> =>
  (await client.query<{ found: boolean }>(HAS_TABLE.compile({ table: `"${schema}".${table}` }))).rows[0]
    ?.found === true;
