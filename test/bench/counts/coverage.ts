import { once } from "node:events";
import { WebSocket } from "ws";

/** The executed part of the server's own code. */
export interface Calls {
  /** Calls of functions. An async function or a generator counts again each time it continues. */
  calls: number;
  functions: ReadonlySet<string>;
  files: ReadonlySet<string>;
}

interface ScriptCoverage {
  url: string;
  functions: { functionName: string; ranges: { startOffset: number; count: number }[] }[];
}

/** The TypeScript loader calls it to keep the names of functions; compiled code does not. */
const OF_THE_LOADER = "__name";

/**
 * Counts calls in another process of Node, by V8's precise coverage.
 * @param inspectorUrl as `--inspect` prints it
 * @param folderUrl the counted code: all scripts below this URL
 */
export const openCoverage = async (inspectorUrl: string, folderUrl: string) => {
  const socket = new WebSocket(inspectorUrl, { perMessageDeflate: false });
  await once(socket, "open");
  let lastId = 0;
  const ask = async (method: string, params = {}): Promise<{ result: ScriptCoverage[] }> => {
    lastId += 1;
    socket.send(JSON.stringify({ id: lastId, method, params }));
    for (;;) {
      const [data] = (await once(socket, "message")) as [Buffer];
      const answer = JSON.parse(data.toString()) as { id?: number; result?: { result: ScriptCoverage[] } };
      if (answer.id !== lastId) continue;
      if (answer.result === undefined) throw new Error(`${method} failed: ${data.toString()}`);
      return answer.result;
    }
  };
  await ask("Profiler.enable");
  await ask("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  return {
    /** The calls since the last call of this method. */
    async take(): Promise<Calls> {
      const { result: scripts } = await ask("Profiler.takePreciseCoverage");
      let calls = 0;
      const functions = new Set<string>();
      const files = new Set<string>();
      for (const { url, functions: ofScript } of scripts) {
        if (!url.startsWith(folderUrl)) continue;
        for (const { functionName, ranges } of ofScript) {
          const { startOffset, count } = ranges[0]!;
          if (count === 0 || functionName === OF_THE_LOADER) continue;
          calls += count;
          functions.add(`${url}:${startOffset}`);
          files.add(url);
        }
      }
      return { calls, functions, files };
    },
    close: () => socket.terminate(),
  };
};
