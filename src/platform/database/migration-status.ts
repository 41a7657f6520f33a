import type pg from "pg";
import { readMigrations, readRan } from "./migrate.ts";

/** `edited`: the file differs from the applied one. `unknown`: applied by a newer version. */
type MigrationState = "applied" | "pending" | "edited" | "unknown";

export interface MigrationStatus {
  name: string;
  state: MigrationState;
}

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
