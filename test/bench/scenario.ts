import type { BareLibraries } from "./bare-library.ts";
import { WIDTH } from "./load.ts";
import type { Figures } from "./report.ts";
import type { RemoteServer, ServerUnderTest } from "./server-process.ts";

/** What a scenario gets. */
export interface Bench {
  server: ServerUnderTest;
  /** This server, and the peer if one was started: they are driven by the same requests. */
  remotes: readonly RemoteServer[];
  libraries: BareLibraries;
  figures: Figures;
  /** Each measurement is repeated so often, the contenders taking turns, and its median reported. */
  repeats: number;
  /** How much to do: 1, or less for a quick look. */
  scale: number;
  /** Turns of the long threads. */
  turns: readonly number[];
  /** Address of another PostgreSQL on this machine, for what `--database` is about. */
  database: string | undefined;
  /** Is called at the end of the benchmark, also when it is stopped early. */
  atEnd(closer: () => Promise<void>): void;
  /** Says what is being done. */
  progress(text: string): void;
}

export interface Scenario {
  readonly name: string;
  readonly about: string;
  /** Only when it is asked for. */
  readonly onRequest?: boolean;
  run(bench: Bench): Promise<void>;
}

/** `count` scaled, but enough for a median. */
export const scaled = (bench: Bench, count: number): number => Math.max(10, Math.round(count * bench.scale));

export interface ThreadAnswer {
  thread_id: string;
}

/** Ids of new threads. */
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
