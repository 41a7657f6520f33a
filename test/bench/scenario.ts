import type { BareLibraries } from "./bare-library.ts";
import { WIDTH } from "./load.ts";
import type { Figures } from "./report.ts";
import type { RemoteServer, ServerUnderTest } from "./server-process.ts";

export interface Bench {
  server: ServerUnderTest;
  /** This server, and the peer if one was started: they get the same requests. */
  remotes: readonly RemoteServer[];
  libraries: BareLibraries;
  figures: Figures;
  /** Each measurement is repeated this often, in alternation of the contenders, and its median reported. */
  repeats: number;
  /** The amount of work: 1, or less for a quick result. */
  scale: number;
  turns: readonly number[];
  /** Address of another PostgreSQL on this machine, for `--database`. */
  database: string | undefined;
  /** Registers a function for the end of the benchmark, also when it is stopped early. */
  atEnd(closer: () => Promise<void>): void;
  /** Reports the current step. */
  progress(text: string): void;
}

export interface Scenario {
  readonly name: string;
  readonly about: string;
  /** Runs only on request. */
  readonly onRequest?: boolean;
  run(bench: Bench): Promise<void>;
}

/** `count` scaled, but enough for a median. */
export const scaled = (bench: Bench, count: number): number => Math.max(10, Math.round(count * bench.scale));

export interface ThreadAnswer {
  thread_id: string;
}

export const createThreads = async (remote: Pick<RemoteServer, "http">, count: number): Promise<string[]> => {
  const ids: string[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) {
      next += 1;
      ids.push((await remote.http.json<ThreadAnswer>("/threads", {})).thread_id);
    }
  };
  await Promise.all(Array.from({ length: WIDTH }, lane));
  return ids;
};

export const HELLO = { messages: [{ role: "user", content: "hello" }] };
