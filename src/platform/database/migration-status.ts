import type pg from "pg";
import { readMigrations, readRan } from "./migrate.ts";

/**
 * `edited`: the file is not the one that has run. `unknown`: it has run, and this version does not know it: a newer one has made
 * these tables.
 */
export type MigrationState = "applied" | "pending" | "edited" | "unknown";

export interface MigrationStatus {
  name: string;
  state: MigrationState;
}

/** What has run in a schema, and what has not, in the order of the names. Changes nothing. */
export const readMigrationStatus = async (client: pg.Client, schema: string): Promise<MigrationStatus[]> => {
  const ran = (await readRan(client, schema)) ?? new Map<string, string>();
  const known = await readMigrations();
  const states = known.map(({ name, checksum }): MigrationStatus => {
    const before = ran.get(name);
    return { name, state: before === undefined ? "pending" : before === checksum ? "applied" : "edited" };
  });
  const unknown = [...ran.keys()]
    .filter((name) => !known.some((migration) => migration.name === name))
    .map((name): MigrationStatus => ({ name, state: "unknown" }));
  return [...states, ...unknown].sort((one, other) => (one.name < other.name ? -1 : 1));
};
