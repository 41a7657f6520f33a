import { createServer as createSocket } from "node:net";
import type { Config } from "../../platform/config/config.ts";
import { sqlState, StartError } from "../../platform/domain/errors.ts";

export const explainListening = (error: unknown, { host, port }: Config): unknown => {
  const code = sqlState(error) ?? "";
  if (code === "EADDRINUSE") {
    return new StartError(
      `Port ${port} on ${host} is in use, perhaps by another Threadloom server. ` +
        `Choose another with --port, e.g. --port ${port + 1}.`,
    );
  }
  if (code === "EACCES") {
    return new StartError(
      `Listening on port ${port} is not permitted. Choose a port above 1023 with --port.`,
    );
  }
  if (["EADDRNOTAVAIL", "ENOTFOUND", "EAI_AGAIN"].includes(code)) {
    return new StartError(`${host} is not an address of this machine. Choose another with --host.`);
  }
  return error;
};

/** Must run first: otherwise a second server would start PostgreSQL and claim runs, only to give them back. */
export const assertPortIsFree = (config: Config): Promise<void> =>
  new Promise((free, reject) => {
    const probe = createSocket();
    probe.once("error", (error) => reject(explainListening(error, config)));
    probe.listen(config.port, config.host, () => probe.close(() => free()));
  });
