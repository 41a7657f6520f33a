const WAITING = `select query as text from pg_stat_activity
  where datname = current_database() and wait_event_type = 'Lock'`;

/** The statements that wait for a lock. */
export const waitingStatements = async (
  ask: (text: string) => Promise<{ text: string }[]>,
): Promise<string[]> => (await ask(WAITING)).map(({ text }) => text);

/** Whether a statement waits for a lock. */
export const isSomeWaiting = async (ask: (text: string) => Promise<{ text: string }[]>): Promise<boolean> =>
  (await waitingStatements(ask)).length > 0;
