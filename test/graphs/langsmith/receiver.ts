import { gunzipSync } from "node:zlib";
import fastify, { type FastifyRequest } from "fastify";

/** A run of LangSmith: a graph, a node, or a call of a model or a tool. */
export interface TracedRun {
  id: string;
  trace_id: string;
  parent_run_id?: string;
  name: string;
  run_type: string;
  session_name: string;
  reference_example_id?: string;
  end_time?: number | string;
  inputs?: Record<string, unknown>;
  outputs?: Record<string, unknown>;
  extra?: { metadata?: Record<string, unknown> };
}

export interface Receiver {
  url: string;
  /** The keys that clients sent. */
  keys: Set<unknown>;
  /** All runs, with their updates. */
  runs(): TracedRun[];
  close(): Promise<void>;
}

/** The part of LangSmith that receives traces. With `multipart: false` it is an old one. */
export const startReceiver = async ({ multipart }: { multipart: boolean }): Promise<Receiver> => {
  const runs = new Map<string, Partial<TracedRun>>();
  const keys = new Set<unknown>();
  const merge = (id: string, fields: object): void => void runs.set(id, { ...runs.get(id), ...fields });
  const app = fastify({ bodyLimit: 100_000_000 });
  app.addContentTypeParser("multipart/form-data", { parseAs: "buffer" }, (_request, body, done) => {
    done(null, body);
  });
  app.addHook("onRequest", (request, _reply, done) => {
    keys.add(request.headers["x-api-key"]);
    done();
  });
  app.get("/info", () => ({
    batch_ingest_config: { use_multipart_endpoint: multipart },
    instance_flags: { gzip_body_enabled: multipart },
  }));
  app.post("/runs/multipart", async ({ body, headers }: FastifyRequest, reply) => {
    const bytes =
      headers["content-encoding"] === "gzip" ? gunzipSync(body as Buffer) : new Uint8Array(body as Buffer);
    const form = await new Response(bytes, {
      headers: { "content-type": headers["content-type"] ?? "" },
    }).formData();
    for (const [name, value] of form) {
      const [, id = "", field] = name.split(".");
      const text = typeof value === "string" ? value : await value.text();
      const parsed = JSON.parse(text) as object;
      merge(id, field === undefined ? parsed : { [field]: parsed });
    }
    return reply.code(202).send({});
  });
  app.post("/runs/batch", (request, reply) => {
    const { post = [], patch = [] } = request.body as Record<"post" | "patch", TracedRun[] | undefined>;
    for (const run of [...post, ...patch]) merge(run.id, run);
    return reply.code(202).send({});
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  return { url, keys, runs: () => [...runs.values()] as TracedRun[], close: () => app.close() };
};
