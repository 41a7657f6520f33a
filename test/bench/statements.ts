import type { ServerUnderTest } from "./server-process.ts";

/** The server's statements during a scenario and their cost, from pg_stat_statements. */

interface StatementRow {
  calls: string;
  total_ms: number;
  mean_ms: number;
  /** Plans made; as many as calls if the database finds no generic plan good enough. */
  plans: string;
  plan_ms: number;
  rows: string;
  query: string;
}

const SHOWN = 14;
const CHARACTERS = 110;

export const resetStatements = async (server: ServerUnderTest): Promise<void> => {
  await server.query("select pg_stat_statements_reset()");
};

export const formatStatements = async (server: ServerUnderTest): Promise<string> => {
  const rows = await server.query<StatementRow>(
    `select calls, total_exec_time + total_plan_time as total_ms, (total_exec_time + total_plan_time) / greatest(calls, 1) as mean_ms,
       rows, plans, total_plan_time as plan_ms, regexp_replace(query, '\\s+', ' ', 'g') as query
     from pg_stat_statements where dbid = (select oid from pg_database where datname = 'threadloom')
     order by total_ms desc limit ${SHOWN}`,
  );
  return rows
    .map(
      ({ calls, total_ms, mean_ms, rows: touched, plans, plan_ms, query }) =>
        `  ${total_ms.toFixed(0).padStart(7)} ms ${calls.padStart(7)} calls ${mean_ms.toFixed(3).padStart(8)} ms each, ` +
        `${plan_ms.toFixed(0).padStart(6)} ms in ${plans.padStart(6)} plans ` +
        `${touched.padStart(8)} rows  ${query.slice(0, CHARACTERS)}`,
    )
    .join("\n");
};
