import type { Visibility } from "../../../access/visibility.ts";
import type { Database } from "../../../platform/database/database.ts";
import { statement } from "../../../platform/database/statement.ts";

/** An assistant as a tool. */
export interface ToolRow {
  assistant_id: string;
  graph_id: string;
  title: string;
  description: string | null;
  tool: string;
  /** Where the list goes on behind this tool. */
  cursor: string;
}

/** Of the project. */
export interface Deployed {
  graphIds: readonly string[];
  /** Their system assistants, which come first. */
  systemIds: readonly string[];
}

const DEPLOYED = { graphIds: "text[]", systemIds: "uuid[]", visible: "fragment" } as const;

/** All providers of models accept names of 64 of these characters. */
const plainName = `left(coalesce(nullif(trim(both '_' from regexp_replace(name, '[^A-Za-z0-9_-]+', '_', 'g')), ''), 'assistant'), 64)`;

/** The end of an id is random; its beginning is a time. */
const longName = `left(plain_name, 55) || '_' || right(assistant_id::text, 8)`;

const ORDER = "not is_system, at, assistant_id";

/** Models read a few hundred characters, and descriptions may have a megabyte. */
const named = ({ graphIds, systemIds, visible }: Readonly<Record<keyof typeof DEPLOYED, string>>): string => `
  select assistant_id, graph_id, left(name, 200) as title, left(description, 4000) as description,
    assistant_id = any(${systemIds}) as is_system,
    (extract(epoch from created_at) * 1000000)::bigint as at, ${plainName} as plain_name
  from threadloom.assistants where graph_id = any(${graphIds}) and ${visible}`;

const tools = (sql: Readonly<Record<keyof typeof DEPLOYED, string>>): string => `
  select *, case when row_number() over (partition by plain_name order by ${ORDER}) = 1
    then plain_name else ${longName} end as tool,
    concat_ws('.', case when is_system then 0 else 1 end, at, assistant_id) as cursor
  from (${named(sql)}) named`;

const LIST = statement(
  { ...DEPLOYED, isBehindSystem: "boolean", at: "bigint", after: "uuid", limit: "integer" },
  (sql) => `select assistant_id, graph_id, title, description, tool, cursor from (${tools(sql)}) tools
  where (${ORDER}) > (${sql.isBehindSystem}, ${sql.at}, ${sql.after})
  order by ${ORDER} limit ${sql.limit}`,
);

/**
 * Of two tools with one name, the older: another user must not take over a name. Indexes: assistants_by_tool,
 * assistants_by_long_tool.
 */
const FIND = statement(
  { ...DEPLOYED, tool: "text" },
  (sql) => `select assistant_id
  from (select * from (${named(sql)}) named where plain_name = ${sql.tool}
    union all select * from (${named(sql)}) named where ${longName} = ${sql.tool}) found
  order by ${ORDER} limit 1`,
);

const CURSOR = /^([01])\.(\d{1,17})\.([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;
const BEGIN = { isBehindSystem: false, at: "-1", after: "00000000-0000-0000-0000-000000000000" };

/** Undefined: no cursor of a list. */
export const placeBehind = (cursor: string | undefined): typeof BEGIN | undefined => {
  if (cursor === undefined) return BEGIN;
  const [, kind, at, after] = CURSOR.exec(cursor) ?? [];
  if (at === undefined || after === undefined) return undefined;
  return { isBehindSystem: kind === "1", at, after };
};

export const createToolRepository = (database: Database) => ({
  async list(
    visibility: Visibility<"assistants">,
    deployed: Deployed,
    place: typeof BEGIN,
    limit: number,
  ): Promise<ToolRow[]> {
    const visible = visibility.on("metadata");
    const { text, values } = LIST.compile({ ...deployed, visible, ...place, limit });
    return await database.boundedRead<ToolRow>(text, values);
  },

  async find(
    visibility: Visibility<"assistants">,
    deployed: Deployed,
    tool: string,
  ): Promise<string | undefined> {
    const visible = visibility.on("metadata");
    const { text, values } = FIND.compile({ ...deployed, visible, tool });
    return (await database.boundedRead<ToolRow>(text, values))[0]?.assistant_id;
  },
});
