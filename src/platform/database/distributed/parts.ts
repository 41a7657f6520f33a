import type { Logger } from "../../lib/logger.ts";
import type { Database, Records } from "../database.ts";
import { createGrouping } from "../grouping.ts";
import type { Nodes } from "./nodes.ts";

type Text = (text: string) => string;

export const recordsOfPart = (records: Records, text: Text): Records => ({
  schema: records.schema,
  encryption: records.encryption,
  objects: records.objects,
  query: (given, values) => records.query(text(given), values),
  execute: (given, values) => records.execute(text(given), values),
});

/** A part as a database: each statement names the part's shards. */
export const createPart = (
  common: Database,
  { onPart }: Pick<Nodes, "onPart">,
  part: number,
  text: Text,
  logger: Logger,
): Database => {
  const database: Omit<Database, "grouped"> = {
    ...common,
    query: (given, values, options) => onPart(part, (node) => node.query(text(given), values, options)),
    execute: (given, values) => onPart(part, (node) => node.execute(text(given), values)),
    transaction: (work, opening) =>
      onPart(part, (node) => node.transaction((records) => work(recordsOfPart(records, text)), opening)),
    boundedRead: (given, values, signal) =>
      onPart(part, (node) => node.boundedRead(text(given), values, signal)),
    boundedReads: (work, signal) =>
      onPart(part, (node) =>
        node.boundedReads(
          (read, readPlannedOnce) =>
            work(
              (given, values) => read(text(given), values),
              (given, values) => readPlannedOnce(text(given), values),
            ),
          signal,
        ),
      ),
  };
  return { ...database, grouped: createGrouping(database, logger) };
};
