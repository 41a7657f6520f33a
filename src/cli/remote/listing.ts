/** Options, tables and bulk actions of the commands `runs` and `threads`. */
import { InvalidArgumentError, Option, type Command } from "commander";
import { StartError } from "../../platform/domain/errors.ts";
import { uuid } from "../../platform/domain/json-schemas.ts";
import type { JsonObject, JsonValue } from "../../platform/lib/json.ts";
import type { CommandSurroundings } from "../command.ts";
import { answeringJson, jsonLine, limitArgument, secondsOf } from "../flags.ts";
import { cut, printable, tableText } from "../printable.ts";
import { NotDoneError } from "../run-command.ts";
import type { RemoteServer, ServerFlags } from "./server.ts";

export const onServer = (command: Command): Command =>
  answeringJson(
    command
      .option("--url <url>", "the server (default: THREADLOOM_URL, else http://127.0.0.1:8123)")
      .option("--api-key <key>", "an API key (default: THREADLOOM_API_KEY)"),
  );

export const idArgument = (text: string): string => {
  const parsed = uuid.safeParse(text);
  if (parsed.success) return parsed.data;
  throw new InvalidArgumentError("Use an id like 0199f3a0-0000-7000-8000-000000000000.");
};

export const idsArgument = (text: string, before: string[] = []): string[] => [...before, idArgument(text)];

const sinceArgument = (text: string): Date => {
  const ago = secondsOf(text);
  const moment = ago === undefined ? new Date(text) : new Date(Date.now() - ago * 1_000);
  if (!Number.isNaN(moment.getTime())) return moment;
  throw new InvalidArgumentError("Use a duration like 15m, 24h or 7d, or a time like 2026-01-31T12:00:00Z.");
};

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
    for (const item of parse(page.items)) {
      if (isPast(item)) return [...found.values()];
      found.set(idOf(item), item);
    }
    // An offset that does not grow would loop forever.
    offset = page.next !== undefined && page.next > offset ? page.next : undefined;
  }
  return [...found.values()];
};

interface Table<Item> {
  titles: readonly string[];
  rowOf(item: Item): string[];
}

export const writeListed = <Item>(
  found: readonly Item[],
  { json, limit }: ListFlags,
  { titles, rowOf }: Table<Item>,
  { write, note, columns }: CommandSurroundings,
): void => {
  if (json) return write(jsonLine(found));
  if (found.length === 0) return note("There are none.\n");
  write(tableText(titles, found.map(rowOf), columns));
  if (found.length === limit) note("There may be more. Use a larger --limit.\n");
};

interface Action {
  /** E.g. `cancelled`; also the name of the field in JSON. */
  done: string;
  noun: "Run" | "Thread";
  json: true | undefined;
  act(id: string): Promise<unknown>;
}

/** A StartError for one id does not stop the others. @throws NotDoneError at the end */
export const forEachId = async (
  ids: readonly string[],
  { done, noun, json, act }: Action,
  { write, note }: CommandSurroundings,
): Promise<void> => {
  const failed: string[] = [];
  for (const id of ids) {
    try {
      await act(id);
      if (!json) note(`${noun} ${id} is ${done}.\n`);
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      failed.push(id);
      note(`threadloom ${noun.toLowerCase()}s: ${error.message}\n`);
    }
  }
  if (json) write(jsonLine({ [done]: ids.filter((id) => !failed.includes(id)), failed }));
  if (failed.length > 0) throw new NotDoneError();
};

const EVENT_COLUMN = 18;

/**
 * @throws StartError at the end of a failed run
 * @returns whether the stream ended by itself
 */
export const tail = async (
  server: RemoteServer,
  path: string,
  json: true | undefined,
  { write, columns, unread, stopping }: CommandSurroundings,
): Promise<boolean> => {
  let failure: string | undefined;
  const signal = AbortSignal.any([unread, stopping()]);
  for await (const { id, event, data } of server.events(path, signal)) {
    const text = printable(typeof data === "string" ? data : JSON.stringify(data));
    if (event === "error") failure = text;
    const line = `${event.padEnd(EVENT_COLUMN)} ${text}`;
    write(json ? jsonLine({ id, event, data }) : `${cut(line, columns ?? Infinity)}\n`);
  }
  if (failure !== undefined) throw new StartError(`The run failed: ${failure}`);
  return !signal.aborted;
};
