import { Option, type Command } from "commander";
import type { JsonObject, JsonValue } from "../../platform/lib/json.ts";
import { limitArgument } from "../flags.ts";
import { onServer, sinceArgument, type RemoteServer, type ServerFlags } from "./server.ts";

/** Which records a command lists. */
export interface ListFlags extends ServerFlags {
  status?: string;
  graph?: string;
  assistant?: string;
  since?: Date;
  limit: number;
}

interface ListWords {
  statuses: readonly string[];
  /** Between "only those" and "of this graph". */
  whose?: string;
  /** What happened to them since: "were made". */
  happened: string;
}

/** Gives a command the flags by which it lists. */
export const listing = (command: Command, { statuses, whose = "", happened }: ListWords): Command =>
  onServer(command)
    .addOption(new Option("--status <status>", "only those").choices(statuses))
    .option("--graph <id>", `only those ${whose}of this graph`)
    .option("--assistant <id>", `only those ${whose}of this assistant`)
    .option("--since <time>", `only those that ${happened} since: 15m, 24h, 7d or a time`, sinceArgument)
    .option("--limit <number>", "how many at most", limitArgument, 20);

interface Search<Item> {
  path: string;
  /** Without `limit` and `offset`. */
  body: JsonObject;
  limit: number;
  /** @throws for what is none */
  parse(items: JsonValue[]): Item[];
  idOf(item: Item): string;
  /** Whether the rest is not asked for, by their order; left out: all are. */
  isPast?(item: Item): boolean;
}

/**
 * The first of what a search finds, page by page: a page of the server ends early where records are long. What moves to the next page
 * meanwhile is listed once.
 */
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
    // A page behind which there is no other place to go on from would be asked for again for ever.
    offset = page.next !== undefined && page.next > offset ? page.next : undefined;
  }
  return [...found.values()];
};
