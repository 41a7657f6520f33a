/**
 * A process that works like normal callers for some time, and writes their waiting times: a thread, a run on it, its state, repeatedly.
 * Arguments: the server's address, milliseconds, credentials.
 */
import type { Credentials } from "./callers.ts";
import { createSender } from "./send.ts";

export interface NormalLoad {
  /** Milliseconds: the median and the 99th percentile of the requests. */
  p50: number;
  p99: number;
  requests: number;
  /** Errors that a correct caller should not get. */
  faults: string[];
}

const CLIENTS = 3;
const PATIENCE_MS = 60_000;
const REFUSED_PAUSE_MS = 100;

const quantile = (sorted: readonly number[], share: number): number =>
  Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0);

const [url = "", milliseconds = "0", credentials = "{}"] = process.argv.slice(2);
const sender = createSender(url, CLIENTS, JSON.parse(credentials) as Credentials);
const times: number[] = [];
const faults: string[] = [];

const ask = async (method: string, address: string, body?: object): Promise<string> => {
  const request = { method, address, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
  const outcome = await sender.send(request, PATIENCE_MS);
  if (outcome.kind === "answered" && outcome.status < 300) {
    times.push(outcome.milliseconds);
    return outcome.text;
  }
  faults.push(`${method} ${address}: ${JSON.stringify(outcome).slice(0, 300)}`);
  await new Promise((resolve) => setTimeout(resolve, REFUSED_PAUSE_MS));
  return "";
};

const end = performance.now() + Number(milliseconds);
const client = async (): Promise<void> => {
  while (performance.now() < end) {
    const made = await ask("POST", "/threads", {});
    if (made === "") continue;
    const { thread_id: threadId } = JSON.parse(made) as { thread_id: string };
    await ask("POST", `/threads/${threadId}/runs/wait`, { assistant_id: "counter", input: {} });
    await ask("GET", `/threads/${threadId}/state`);
  }
};
await Promise.all(Array.from({ length: CLIENTS }, client));
sender.close();
times.sort((one, other) => one - other);
const result: NormalLoad = {
  p50: quantile(times, 0.5),
  p99: quantile(times, 0.99),
  requests: times.length,
  faults: faults.slice(0, 10),
};
process.stdout.write(JSON.stringify(result));
