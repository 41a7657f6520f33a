/**
 * Where an answer of this server differs from the contract, and why. docs/compatibility.md shows the reasons. A difference that no longer
 * exists fails its test and has to be removed here.
 */
export interface Difference {
  operations: string[];
  /** In the contract's form. */
  status: string;
  /** The status of the actual answer. */
  answers?: string;
  /** The parts of the contract's schema that the answer violates. */
  violations?: string[];
  /** The reason in docs/compatibility.md. */
  because: string;
}

/** For states: the hosted server answers `null`, too, and Python's RemoteGraph needs these keys. */
const NULLS_OF_STATES =
  "missing parts of a state are `null` instead of left out: `checkpoint_map`, `parent_checkpoint`, and of tasks `error`, `checkpoint`, `state`; the clients' types say so";
const NULL_VALUES = "`values` of a thread that has not run is `null`; the clients' types say so";
const NOTHING_FOUND = "a filter that matches nothing is no error: it finds nothing, or counts 0";
const NO_THREAD_OF_A_CRON =
  "the `thread_id` of a cron is `null` if each of its runs gets a new thread; the clients' types say so";

export const DIFFERENCES: Difference[] = [
  {
    operations: [
      "DELETE /assistants/{assistant_id}",
      "DELETE /threads/{thread_id}",
      "DELETE /threads/{thread_id}/runs/{run_id}",
      "DELETE /runs/crons/{cron_id}",
    ],
    status: "200",
    answers: "204",
    because: "deletions answer 204 without a body; all clients take both",
  },
  {
    operations: [
      "POST /assistants/search",
      "POST /assistants/count",
      "POST /threads/count",
      "POST /runs/crons/count",
    ],
    status: "404",
    answers: "200",
    because: NOTHING_FOUND,
  },
  {
    operations: ["POST /threads", "PATCH /threads/{thread_id}"],
    status: "200",
    violations: ["/values must be object"],
    because: NULL_VALUES,
  },
  {
    operations: ["POST /threads/search"],
    status: "200",
    violations: ["/*/values must be object"],
    because: NULL_VALUES,
  },
  {
    operations: ["GET /threads/{thread_id}/state"],
    status: "200",
    violations: [
      "/checkpoint/checkpoint_map must be object",
      "/tasks/*/checkpoint must be object",
      "/tasks/*/error must be string",
      "/tasks/*/state must be object",
    ],
    because: NULLS_OF_STATES,
  },
  {
    operations: [
      "GET /threads/{thread_id}/state/{checkpoint_id}",
      "POST /threads/{thread_id}/state/checkpoint",
    ],
    status: "200",
    violations: ["/checkpoint/checkpoint_map must be object"],
    because: NULLS_OF_STATES,
  },
  {
    operations: ["GET /threads/{thread_id}/history", "POST /threads/{thread_id}/history"],
    status: "200",
    violations: [
      "/*/checkpoint/checkpoint_map must be object",
      "/*/parent_checkpoint must be object",
      "/*/tasks/*/checkpoint must be object",
      "/*/tasks/*/error must be string",
      "/*/tasks/*/state must be object",
    ],
    because: NULLS_OF_STATES,
  },
  {
    operations: ["POST /runs/crons", "GET /runs/crons/{cron_id}", "PATCH /runs/crons/{cron_id}"],
    status: "200",
    violations: ["/thread_id must be string"],
    because: NO_THREAD_OF_A_CRON,
  },
  {
    operations: ["POST /runs/crons/search"],
    status: "200",
    violations: ["/*/thread_id must be string"],
    because: NO_THREAD_OF_A_CRON,
  },
  {
    operations: ["POST /threads/{thread_id}/copy"],
    status: "409",
    answers: "200",
    because: "a copy has a new id, which can't be taken",
  },
  {
    operations: ["POST /threads/{thread_id}/runs/{run_id}/cancel"],
    status: "200",
    answers: "202",
    because: "a cancellation answers 202 at once, or 204 with `wait=1` once the run has ended",
  },
  {
    operations: [
      "GET /store/items",
      "POST /threads/{thread_id}/stream/events",
      "POST /threads/{thread_id}/commands",
    ],
    status: "400",
    answers: "422",
    because: "invalid input gets a 422 everywhere",
  },
  {
    operations: ["POST /store/namespaces"],
    status: "200",
    violations: ["/ must be array"],
    because:
      "the list comes as `{namespaces: [...]}`: the JavaScript SDK reads that, the Python SDK takes both",
  },
  {
    operations: ["GET /ok"],
    status: "500",
    answers: "503",
    because: "an unhealthy server says 503, which probes and proxies understand",
  },
];

/** Paths that this server does not implement yet. */
export const NOT_YET: { pattern: RegExp; because: string }[] = [];
