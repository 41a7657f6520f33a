import type { Logger } from "../../platform/lib/logger.ts";

export interface ReloadLog {
  watching(configFile: string): void;
  renewed(facts: {
    files: string;
    ms: number;
    graphs: readonly string[] | undefined;
    wasBroken: boolean;
  }): void;
  /** Drops repeats. */
  broken(files: string, message: string): void;
  restarts(files: string): void;
}

/** @param isForPerson false: writes log lines */
export const createReloadLog = (
  isForPerson: boolean,
  logger: Logger,
  write: (text: string) => void,
): ReloadLog => {
  let last: string | undefined;
  const print = (text: string): void => {
    const time = new Date().toTimeString().slice(0, 8);
    write(`[${time}] ${text}\n`);
  };
  return {
    watching(configFile) {
      const text = `watching the graphs of ${configFile}`;
      if (isForPerson) print(`${text}; Ctrl-C ends it`);
      else logger.info(text);
    },
    renewed({ files, ms, graphs, wasBroken }) {
      last = undefined;
      const now = graphs === undefined ? "" : `; the graphs are ${graphs.join(", ")}`;
      const text = `reloaded in ${ms} ms after a change of ${files}${wasBroken ? ": it works again" : ""}${now}`;
      if (isForPerson) print(text);
      else logger.info({ ms, graphs, works_again: wasBroken || undefined }, text);
    },
    broken(files, message) {
      const isSame = message === last;
      last = message;
      const text = `not reloaded after a change of ${files}; the code before it goes on`;
      if (!isForPerson) return logger.error({ reason: message }, text);
      print(isSame ? `${text} (as before)` : `${text}\n\n${message.replace(/^/gm, "  ")}\n`);
    },
    restarts(files) {
      const text = `restarting after a change of ${files}`;
      if (isForPerson) print(text);
      else logger.info(text);
    },
  };
};
