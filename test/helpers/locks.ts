import { inject } from "vitest";
import { databaseNamed, onServer } from "./citus.ts";

interface Waiting {
  database: string;
  texts: string[];
}

const WAITING = `select current_database() as database, array(
  select query from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock') as texts`;

/** The statements that wait for a lock, on each node of the database that `ask` queries. */
export const waitingStatements = async (ask: (text: string) => Promise<Waiting[]>): Promise<string[]> => {
  const [own] = await ask(WAITING);
  const texts = [...own!.texts];
  for (const node of inject("otherNodes"))
    await onServer(databaseNamed(node, own!.database), async (client) => {
      texts.push(...(await client.query<Waiting>(WAITING)).rows[0]!.texts);
    });
  return texts;
};

/** Whether a statement waits for a lock. */
export const isSomeWaiting = async (ask: (text: string) => Promise<Waiting[]>): Promise<boolean> =>
  (await waitingStatements(ask)).length > 0;
