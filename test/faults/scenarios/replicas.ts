import { setTimeout as pause } from "node:timers/promises";
import { newId } from "../../../src/platform/lib/ids.ts";
import { openStream, type SentEvent } from "../../helpers/server-sent-events.ts";
import { percentile, seconds, type Replica } from "../bench.ts";
import { complaintsWhere, type Scenario } from "../scenario.ts";

/** 8: a deployment. Clients use any ready replica, like behind a load balancer. */
export const rollingRestart = ({
  replicas: count,
  environment = {},
}: {
  replicas: number;
  environment?: Record<string, string>;
}): Scenario => ({
  number: 8,
  title: "SIGTERM rolling restart under load",
  criterion: "no failed request beyond a closed connection; no run lost; every run success",
  scaled: `${count} replicas`,
  async run({ bench }) {
    const replicas = await Promise.all(Array.from({ length: count }, () => bench.start({ environment })));
    let stopped = false;
    let turn = 0;
    let requests = 0;
    let closed = 0;
    const failures: string[] = [];

    /** A failed health check removes a replica; the replica may stop between the check and the request. */
    const pick = async (): Promise<Replica> => {
      for (;;) {
        const replica = replicas[turn++ % replicas.length] as Replica;
        if (replica.url === "") continue;
        const healthy = await replica.api.get("/ok").catch(() => undefined);
        if (healthy?.status === 200) return replica;
        await pause(5);
      }
    };
    const ask = async <Body>(
      what: (replica: Replica) => Promise<{ status: number; text: string; body: Body }>,
    ) => {
      for (;;) {
        requests += 1;
        try {
          const answer = await what(await pick());
          if (answer.status >= 400) failures.push(`${answer.status}: ${answer.text}`);
          return answer;
        } catch {
          closed += 1; // a balancer or client retries this elsewhere
        }
      }
    };
    const client = async (): Promise<void> => {
      while (!stopped) {
        const threadId = newId();
        const created = await ask<{ run_id: string }>(({ api }) =>
          api.post(`/threads/${threadId}/runs`, {
            assistant_id: "sleep",
            input: { messages: [], milliseconds: 300 },
            if_not_exists: "create",
          }),
        );
        if (created.status !== 200) continue;
        const joined = await ask<{ __error__?: unknown }>(({ api }) =>
          api.get(`/threads/${threadId}/runs/${created.body.run_id}/join`),
        );
        if (joined.body?.__error__ !== undefined) failures.push(joined.text);
      }
    };
    let resumed = 0;
    /** Streams its runs, and continues elsewhere when a replica disconnects it. A disconnect does not cancel the run. */
    const streamer = async (): Promise<void> => {
      while (!stopped) {
        const threadId = newId();
        let path = `/threads/${threadId}/runs/stream`;
        let body: object | undefined = {
          assistant_id: "sleep",
          input: { messages: [], milliseconds: 2_500 }, // longer than the grace period
          stream_mode: ["custom", "values"],
          stream_resumable: true,
          on_disconnect: "cancel",
          if_not_exists: "create",
        };
        let last = -1;
        const names: string[] = [];
        for (let ended = false; !ended;) {
          requests += 1;
          try {
            const { url } = await pick();
            const stream = await openStream(
              `${url}${path}`,
              body === undefined ? { headers: { "last-event-id": String(last) } } : { body },
            );
            path = `${stream.headers.get("content-location")}/stream`;
            body = undefined;
            for (;;) {
              const event = await stream.next();
              if (event === undefined) break;
              last = event.id ?? last;
              names.push(event.event);
            }
            ended = true;
          } catch (error) {
            if (error instanceof Error && /answered/.test(error.message)) failures.push(error.message);
            closed += 1;
            if (body === undefined) resumed += 1;
            else break; // not acknowledged
          }
        }
        if (body === undefined && (names[0] !== "metadata" || names.at(-1) !== "values")) {
          failures.push(`a stream brought ${names.join()}`);
        }
      }
    };
    const clients = [...Array.from({ length: 4 }, client), ...Array.from({ length: 3 }, streamer)];
    const durations: number[] = [];
    for (const [index, replica] of replicas.entries()) {
      await pause(700);
      const startedAt = Date.now();
      replica.signal("SIGTERM");
      const code = await replica.process.exit();
      durations.push(Date.now() - startedAt);
      if (code !== 0) failures.push(`a replica ended with ${code}`);
      replicas[index] = await bench.start({ environment });
    }
    stopped = true;
    await Promise.all(clients);
    const lost = await bench.untilAllEnded();
    const bad = await bench.query<{ status: string }>(
      "select status from threadloom.runs where status <> 'success'",
    );
    const [stored] = await bench.query<{ count: number }>(
      "select count(*)::int as count from threadloom.runs",
    );
    return {
      figure: `${requests} requests: ${failures.length} failed, ${closed} closed connections, ${resumed} streams resumed elsewhere; ${stored?.count} runs, lost ${lost}; a stop took ${seconds(Math.max(...durations))} at most`,
      complaints: [
        ...failures.slice(0, 3),
        ...complaintsWhere({
          "a run was lost": lost > 0,
          [`runs ended as ${bad.map((run) => run.status).join()}`]: bad.length > 0,
        }),
      ],
    };
  },
});

export const manyClaimers = ({ claimers, runs }: { claimers: number; runs: number }): Scenario => ({
  number: 11,
  title: "many claimers on one queue",
  criterion: "each run is claimed once",
  scaled: `${claimers} slots in 2 processes and ${runs} runs instead of 50 and 10,000`,
  async run({ bench }) {
    const environment = { N_JOBS_PER_WORKER: String(claimers / 2) };
    const producer = await bench.start({ environment: { ROLE: "api" } });
    const workers = [bench.start({ environment }), bench.start({ environment })];
    let acknowledged = 0;
    const client = async (): Promise<void> => {
      while (acknowledged < runs) {
        acknowledged += 1;
        const answer = await producer.api.post(`/threads/${newId()}/runs`, {
          assistant_id: "two-step",
          input: { messages: [] },
          if_not_exists: "create",
        });
        if (answer.status !== 200) throw new Error(answer.text);
      }
    };
    await Promise.all([...Array.from({ length: 8 }, client), ...workers]);
    const lost = await bench.untilAllEnded();
    const counts = await bench.query<{ attempt: number; status: string; count: number }>(
      "select attempt, status, count(*)::int as count from threadloom.runs group by 1, 2",
    );
    const doubled = await bench.doubledWinners();
    return {
      figure: `${counts.map((row) => `${row.count} ${row.status} in attempt ${row.attempt}`).join(", ")}; lost ${lost}; doubled ${doubled}`,
      complaints: complaintsWhere({
        "a run was lost": lost > 0,
        "two attempts wrote": doubled > 0,
        "a run was claimed twice or failed": counts.some(
          (row) => row.attempt !== 1 || row.status !== "success",
        ),
      }),
    };
  },
});

/** 13: a stream that breaks after each event and is resumed on another replica. */
export const cutStreams = (): Scenario => ({
  number: 13,
  title: "the stream cut at every event and resumed on another replica",
  criterion: "what both connections delivered equals the log, for every event",
  async run({ bench }) {
    const [a, b] = (await Promise.all([bench.start(), bench.start()])) as [Replica, Replica];
    const body = {
      assistant_id: "ledger",
      input: { steps: 8, milliseconds: 40 },
      stream_mode: ["values", "updates", "custom"],
      stream_resumable: true,
    };
    const read = async (cutAfter: number): Promise<{ runId: string; events: SentEvent[]; gapMs: number }> => {
      const threadId = await a.api.aThread();
      const stream = await openStream(`${a.url}/threads/${threadId}/runs/stream`, { body });
      const events: SentEvent[] = [];
      while (events.length < cutAfter) events.push((await stream.next()) as SentEvent);
      const runId = /runs\/([^/]+)/.exec(stream.headers.get("content-location") ?? "")?.[1] ?? "";
      stream.close();
      const cutAt = Date.now();
      const resumed = await openStream(`${b.url}/threads/${threadId}/runs/${runId}/stream`, {
        headers: { "last-event-id": String(events.at(-1)?.id ?? -1) },
      });
      const next = await resumed.next();
      const gapMs = Date.now() - cutAt;
      if (next !== undefined) events.push(next, ...(await resumed.rest()).filter((event) => event !== next));
      return { runId, events, gapMs };
    };
    const lengths = new Set<number>();
    const gaps: number[] = [];
    const differences: string[] = [];
    let cuts = 1;
    for (let total = 2; cuts < total; cuts += 1) {
      const { runId, events, gapMs } = await read(cuts);
      const log = await bench.query<{ seq: number; event: string; data: string }>(
        "select seq::integer as seq, event, data from threadloom.run_events where run_id = $1 order by seq",
        [runId],
      );
      total = log.length;
      lengths.add(total);
      if (cuts < total) gaps.push(gapMs);
      const sent = JSON.stringify(events.map(({ id, event, data }) => [id, event, data]));
      const kept = JSON.stringify(log.map(({ seq, event, data }) => [seq, event, JSON.parse(data)]));
      if (sent !== kept)
        differences.push(`cut after event ${cuts}: ${events.length} events, the log has ${total}`);
    }
    return {
      figure: `${cuts - 1} cuts in streams of ${[...lengths].join(" or ")} events: ${differences.length} differ; next event after p50 ${percentile(gaps, 0.5)} ms, max ${Math.max(...gaps)} ms`,
      complaints: differences.slice(0, 5),
    };
  },
});
