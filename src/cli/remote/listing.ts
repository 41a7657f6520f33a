import { Option, type Command } from "commander";
import type { JsonObject, JsonValue } from "../../platform/lib/json.ts";
import { limitArgument } from "../flags.ts";
import { onServer, sinceArgument, type RemoteServer, type ServerFlags } from "./server.ts";

export interface ListFlags extends ServerFlags {
  status?: string;
  graph?: string;
  assistant?: string;
  since?: Date;
  limit: number;
}

interface ListWords {
  statuses: readonly string[];
  /** Stands between "only those" and "of this graph" in the help. */
  whose?: string;
  /** Completes the help of `--since`, e.g. "were made". */
  happened: string;
}

export const listing = (command: Command, { statuses, whose = "", happened }: ListWords): Command =>
  onServer(command)
    .addOption(new Option("--status <status>", "only those").choices(statuses))
    .option("--graph <id>", `only those ${whose}of this graph`)
    .option("--assistant <id>", `only those ${whose}of this assistant`)
    .option("--since <time>", `only those that ${happened} since: 15m, 24h, 7d or a time`, sinceArgument)
    .option("--limit <number>", "how many at most", limitArgument, 20);

interface Search<Item> {
  path: string;
  body: JsonObject;
  limit: number;
  parse(items: JsonValue[]): Item[];
  idOf(item: Item): string;
  /** True stops the paging. */
  isPast?(item: Item): boolean;
}

/** The server ends a page early if records are long. A record that moves to the next page is listed once. */
export const readListed = async <Item>(
  server: Pick<RemoteServer, "search">,
  { path, body, limit, parse, idOf, isPast = () => false }: Search<Item>,
): Promise<Item[]> => {
  const found = new Map<string, Item>();
  let offset: number | undefined = 0;
  while (offset !== undefined && found.size < limit) {
    const page: { items: JsonValue[]; next: number | undefined } = await server.search(path, {
      ...body,
      limit: limit - found.size,
      offset,
    });
    const items = parse(page.items);
    for (const item of items) {
      if (isPast(item)) return [...found.values()];
      found.set(idOf(item), item);
    }
    // An offset that does not grow would loop forever.
    offset = page.next !== undefined && page.next > offset ? page.next : undefined;
  }
  return [...found.values()];
};
