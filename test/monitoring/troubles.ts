import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import pg from "pg";
import { createMetrics } from "../../src/platform/metrics/metrics.ts";
import { apiOf, saying } from "../helpers/api.ts";
import { startTestServer, type TestServer, type TestServerOptions } from "../helpers/app.ts";
import { freePort } from "../helpers/free-port.ts";
import { query } from "../helpers/query.ts";
import { API_KEY, type Job } from "./prometheus.ts";

const jobOf = ({ url }: { url: string }): Job => ({ target: new URL(url).host });
const RESTARTS = 3;
const ROUND_MS = 400;

/** Stands for a server whose graphs call models and tools. */
const startModels = async () => {
  const metrics = createMetrics();
  const server = createServer((_request, response) => {
    void metrics.registry.metrics().then((text) => response.end(text));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    call(): void {
      for (const failed of [true, false]) {
        metrics.modelCall({ model: "m", seconds: 0.5, failed });
        metrics.tokensUsed("m", 100, 20);
        metrics.toolCall({ tool: "t", seconds: 0.1, failed });
      }
    },
    close: () => new Promise((resolve) => server.close(resolve)),
  };
};

/** Each server is a job of its own, since an alert compares the servers of a job. */
export const startTroubles = async () => {
  const closers: (() => Promise<unknown>)[] = [];
  const open = async (options: TestServerOptions): Promise<TestServer> => {
    const server = await startTestServer(options);
    closers.push(() => server.close());
    return server;
  };
  const close = async (): Promise<void> => {
    for (const closer of closers.splice(0).reverse()) await closer();
  };
  try {
    const restartingPort = await freePort();
    const [usual, guarded, full, away, late, deadly, models, first] = await Promise.all([
      open({}),
      // Callers without a name have no limits on loopback.
      open({ apiKeys: [API_KEY], keyFactor: 1, searchesPerMinute: 1, role: "api" }),
      open({ jobsPerWorker: 1 }),
      open({ databasePoolSize: 2 }),
      open({ role: "api" }),
      open({ graphProcesses: 1, maxAttempts: 1 }),
      startModels(),
      startTestServer({ port: restartingPort, role: "api" }),
    ]);
    closers.push(() => models.close());

    const fill = async (): Promise<void> => {
      const waits = { assistant_id: "gate", input: { label: "never" } };
      for (let runs = 0; runs < 3; runs += 1)
        await apiOf(full).post(`/threads/${await apiOf(full).aThread()}/runs`, waits);
      // As if the waiting runs had ended their process twice, and nobody had their graph any more.
      await query(
        full,
        `update threadloom.runs set graph_id = 'gone', lost_attempts = 2 where status = 'pending'`,
      );
      closers.push(() => apiOf(full).post("/runs/cancel", { status: "all" }));
    };

    const beLate = async (): Promise<void> => {
      await query(
        late,
        `insert into threadloom.crons (cron_id, assistant_id, schedule, payload, next_run_date)
         values (gen_random_uuid(), gen_random_uuid(), '0 0 1 1 *', '{}', now() - interval '5 minutes')`,
      );
      await query(
        late,
        `insert into threadloom.deliveries (delivery_id, kind, thread_id, assistant_id, graph_id, url, receiver, run_status,
           metadata, config, context, multitask_strategy, run_created_at, run_ended_at, values_omitted, due_at)
         values (gen_random_uuid(), 'webhook', gen_random_uuid(), gen_random_uuid(), 'agent', 'https://example.com', 'example.com:443',
           'success', '{}', '{}', '{}', 'enqueue', now(), now() - interval '2 hours', false, now() + interval '1 hour')`,
      );
    };
    /** Again and again, because a sweep may remove it. */
    const expire = (): Promise<unknown> =>
      query(
        late,
        `insert into threadloom.threads (thread_id, ttl_strategy, ttl_minutes, expires_at)
         values (gen_random_uuid(), 'delete', 1, now() - interval '2 hours')`,
      );

    /** Requests wait for the lock with all connections of the server. */
    const block = async (): Promise<void> => {
      const locker = new pg.Client({ connectionString: away.connectionString });
      await locker.connect();
      closers.push(() => locker.end());
      await locker.query("begin");
      await locker.query("lock table threadloom.threads in access exclusive mode");
      for (let requests = 0; requests < 5; requests += 1)
        void fetch(`${away.url}/threads/${crypto.randomUUID()}`).catch(() => undefined);
    };

    const kill = async (): Promise<void> => {
      await apiOf(deadly).post("/runs/wait", { assistant_id: "lethal", input: saying("die") });
    };

    const restart = async (hasScraped: () => Promise<unknown>): Promise<void> => {
      let server = first;
      for (let restarts = 0; restarts < RESTARTS; restarts += 1) {
        await hasScraped();
        await server.close();
        server = await startTestServer({ port: restartingPort, role: "api" });
      }
      closers.push(() => server.close());
    };

    const useUsual = async (): Promise<void> => {
      const api = apiOf(usual);
      const thread = await api.aThread();
      const body = { assistant_id: "two-step", input: saying("hello") };
      const stream = await fetch(`${usual.url}/threads/${thread}/runs/stream`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ ...body, stream_resumable: true }),
      });
      await stream.text();
      await api.post(`/threads/${thread}/runs/wait`, { ...body, assistant_id: "failing" });
      for (let searches = 0; searches < 20; searches += 1)
        await fetch(`${guarded.url}/threads/search`, {
          method: "POST",
          headers: { "content-type": "application/json", "x-api-key": API_KEY },
          body: "{}",
        }).then((answer) => answer.text());
    };

    const begin = (): (() => Promise<void>) => {
      let isOver = false;
      const repeat = async (work: () => Promise<unknown>): Promise<void> => {
        while (!isOver) await Promise.all([work(), pause(ROUND_MS)]);
      };
      const repeated = [
        async () => models.call(),
        useUsual,
        expire,
        () => fetch(`${away.url}/ok?check_db=1`).then((answer) => answer.text()),
        kill,
      ].map(repeat);
      return async () => {
        isOver = true;
        await Promise.all(repeated);
      };
    };

    return {
      jobs: {
        threadloom: jobOf(usual),
        "threadloom-guarded": jobOf(guarded),
        "threadloom-full": jobOf(full),
        "threadloom-away": { ...jobOf(away), isSlow: true },
        "threadloom-late": jobOf(late),
        "threadloom-deadly": jobOf(deadly),
        "threadloom-models": jobOf(models),
        "threadloom-restarting": { target: `127.0.0.1:${restartingPort}` },
        "threadloom-down": { target: `127.0.0.1:${await freePort()}` },
      },
      /** Begins each trouble. `hasScraped` resolves when Prometheus knows the present start of that job. */
      async provoke(hasScraped: (job: string) => Promise<unknown>): Promise<void> {
        closers.push(begin());
        await Promise.all([fill(), beLate(), block(), restart(() => hasScraped("threadloom-restarting"))]);
        await apiOf(usual).post("/runs/wait", { assistant_id: "blocking", input: { milliseconds: 1_500 } });
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
};
