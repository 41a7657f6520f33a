import type { JsonValue } from "../../platform/lib/json.ts";
import { StartError } from "../../platform/domain/errors.ts";
import { printable } from "../printable.ts";
import type { RemoteServer } from "./server.ts";

const EVENT_COLUMN = 18;

const failureIn = (event: string, data: JsonValue): string | undefined =>
  event === "error" ? (typeof data === "string" ? data : JSON.stringify(data)) : undefined;

interface TailSurroundings {
  write(text: string): void;
  readonly columns?: number | undefined;
  readonly unread: AbortSignal;
  stopping(): AbortSignal;
}

interface TailOptions {
  path: string;
  json: boolean;
}

/**
 * @throws StartError at the end of a failed run
 * @returns whether the stream ended by itself
 */
export const tail = async (
  server: RemoteServer,
  { path, json }: TailOptions,
  { write, columns, unread, stopping }: TailSurroundings,
): Promise<boolean> => {
  let failure: string | undefined;
  const signal = AbortSignal.any([unread, stopping()]);
  for await (const { id, event, data } of server.events(path, { from: "-1", signal })) {
    failure = failureIn(event, data) ?? failure;
    const text = typeof data === "string" ? data : JSON.stringify(data);
    const line = `${event.padEnd(EVENT_COLUMN)} ${printable(text)}`;
    const shown = columns === undefined || line.length <= columns ? line : `${line.slice(0, columns - 1)}…`;
    write(json ? `${JSON.stringify({ id, event, data })}\n` : `${shown}\n`);
  }
  if (failure !== undefined) throw new StartError(`The run failed: ${printable(failure)}`);
  return !signal.aborted;
};
