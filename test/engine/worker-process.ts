import type { TestServer } from "../helpers/app.ts";
import { PATIENT_LEASES_ENVIRONMENT } from "../helpers/leases.ts";
import { spawnServer, type ServerProcess } from "../helpers/server-process.ts";
import { ENGINE_GRAPHS } from "./graphs/config-file.ts";

/** Processes that execute runs beside a test's server; `end` kills the ones that still run. */
export const workerProcesses = () => {
  const processes: ServerProcess[] = [];
  return {
    /** Starts another process on the database of this server; resolves when it takes runs. */
    async start(
      { connectionString }: Pick<TestServer, "connectionString">,
      environment: Record<string, string> = {},
    ): Promise<ServerProcess> {
      const worker = spawnServer(["--config", ENGINE_GRAPHS, "--port", "0"], {
        DATABASE_URL: connectionString,
        ...PATIENT_LEASES_ENVIRONMENT,
        ...environment,
      });
      processes.push(worker);
      await worker.address();
      return worker;
    },
    end: async (): Promise<void> => void (await Promise.all(processes.map((one) => one.kill()))),
  };
};
