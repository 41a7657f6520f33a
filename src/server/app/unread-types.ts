import type { Graphs } from "../../graphs/graphs.ts";
import { isDeclaredByTypes } from "../../graphs/json-schemas.ts";
import type { GraphEntry } from "../../graphs/project/langgraph-json.ts";
import { TYPESCRIPT } from "../../graphs/typescript-reach.ts";

const KEYS_NAMED = 5;

const namesOf = (keys: readonly string[]): string =>
  keys.length > KEYS_NAMED
    ? `${keys.slice(0, KEYS_NAMED).join(", ")} and ${keys.length - KEYS_NAMED} more`
    : keys.join(", ");

/** The fields of inputs whose type only TypeScript source tells; undefined if there are none. Factories are left out. */
export const unreadTypes = async (
  graphs: Graphs,
  entries: readonly GraphEntry[],
): Promise<string | undefined> => {
  const found: string[] = [];
  for (const { id, file } of entries) {
    if (!TYPESCRIPT.test(file) || graphs.isFactory(id)) continue;
    if (!isDeclaredByTypes(await graphs.resolve(id))) continue;
    const { properties = {} } = await graphs.declaredInput(id);
    const keys = Object.entries(properties as object).flatMap(([key, schema]) =>
      Object.keys(schema as object).length === 0 ? [key] : [],
    );
    if (keys.length > 0) found.push(`${namesOf(keys)} of graph '${id}'`);
  }
  return found.length === 0 ? undefined : found.join("; ");
};
