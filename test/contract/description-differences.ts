/**
 * Where this server's description of itself (`/openapi.json`) differs from the contract, and why. Each pattern matches lines of
 * `differencesFromContract`; one without a match fails its test.
 */
export interface DescriptionDifference {
  /** The difference, in the words of docs/compatibility.md. */
  what: string;
  lines: RegExp;
  because: string;
}

const CREATION = String.raw`^POST (/threads/\{thread_id\})?/runs(/stream|/wait|/batch)?: `;
const THREADLESS = String.raw`^POST /runs(/stream|/wait|/batch)?: `;

export const DESCRIPTION_DIFFERENCES: DescriptionDifference[] = [
  {
    what: "statuses 401 and 403",
    lines: /: with status 40[13]$/,
    because: "with API keys every operation may answer them",
  },
  {
    what: "`provisional` of schemas",
    lines: /^GET \/assistants\/\{assistant_id\}\/schemas: with answer field provisional$/,
    because: "a form has to see that the source of a graph is still being read",
  },
  {
    what: "statuses 400 and 413 of operations with a body",
    lines: /: with status (400|413)$/,
    because: "a body may be no JSON, or too large",
  },
  {
    what: "status 404 of states, histories, versions and copies",
    lines: /(\/state.*|\/history|\/versions|\/copy|\/subgraphs\/\{namespace\}): with status 404$/,
    because: "the contract leaves out that the thread, the assistant or the subgraph may be missing",
  },
  {
    what: "statuses 404 and 422 of event streaming",
    lines: /^POST \/threads\/\{thread_id\}\/(stream\/events|commands): with status (404|422)$/,
    because: "a missing assistant gets a 404, and invalid input gets a 422 everywhere",
  },
  {
    what: "`stream_mode` of the stream of a thread",
    lines: /^GET \/threads\/\{thread_id\}\/stream: with parameter query stream_mode$/,
    because: "the SDKs send it in the place of `stream_modes`; either is taken",
  },
  {
    what: "`stacktrace` of a refused command",
    lines: /^POST \/threads\/\{thread_id\}\/commands: without answer field stacktrace$/,
    because: "clients do not get stack traces of the server",
  },
  {
    what: "status 422 of `GET /assistants/{assistant_id}`, `/ok` and `/metrics`",
    lines: /^GET (\/assistants\/\{assistant_id\}|\/ok|\/metrics): with status 422$/,
    because: "invalid input gets a 422 everywhere",
  },
  {
    what: "`ids` of `POST /threads/count`",
    lines: /^POST \/threads\/count: with body field ids$/,
    because: "a search takes `ids`, and a count tells how many threads this search finds",
  },
  {
    what: "status 404 of searches and counts",
    lines: /\/(search|count): without status 404$/,
    because: "a filter that matches nothing finds nothing, or counts 0",
  },
  {
    what: "statuses of deletions",
    lines: /^DELETE .*: (without status 200|with status 204)$/,
    because: "deletions answer 204 without a body; all clients take both",
  },
  {
    what: "status 409 of the deletion of a run",
    lines: /^DELETE \/threads\/\{thread_id\}\/runs\/\{run_id\}: with status 409$/,
    because: "a run in progress is to be cancelled first",
  },
  {
    what: "status 409 of the update of a state",
    lines: /^POST \/threads\/\{thread_id\}\/state: with status 409$/,
    because:
      "the state of a thread with a run in progress can't be changed; the official tests wait for that 409",
  },
  {
    what: "status 204 of the update of a thread",
    lines: /^PATCH \/threads\/\{thread_id\}: with status 204$/,
    because: "the SDK sends `Prefer: return=minimal` and relies on it",
  },
  {
    what: "status 409 of copies",
    lines: /\/copy: without status 409$/,
    because: "a copy has a new id, which can't be taken",
  },
  {
    what: "statuses of cancellations",
    lines: /\/cancel: (without status 200|with status 20[24])$/,
    because: "202 at once, or 204 with `wait=1` once the run has ended",
  },
  {
    what: "statuses of `/ok`",
    lines: /^GET \/ok: (without status 500|with status 503)$/,
    because: "an unhealthy server says 503, which probes and proxies understand",
  },
  {
    what: "status 400 of `GET /store/items`",
    lines: /^GET \/store\/items: without status 400$/,
    because: "invalid input gets a 422 everywhere",
  },
  {
    what: "body of `POST /assistants/{assistant_id}/versions`",
    lines: /\/versions: with body field (metadata|limit|offset)$/,
    because:
      "the contract has the schema of this body (AssistantVersionsSearchRequest) but does not refer to it",
  },
  {
    what: "`version` of `POST /assistants/{assistant_id}/latest`",
    lines: /\/latest: (without required parameter query version|with body field version)$/,
    because: "clients send it in the body, as AssistantVersionChange describes it; the query works too",
  },
  {
    what: "`error` of threads",
    lines: /^\w+ \/threads(\/search|\/\{thread_id\}(\/copy)?)?: with answer field error$/,
    because: "the SDK's type of a thread has this field: the reason why the last run failed",
  },
  {
    what: "`select` of states and histories",
    lines: /\/(state(\/checkpoint|\/\{checkpoint_id\})?|history): with (parameter query|body field) select$/,
    because: "the SDK sends it since 1.15",
  },
  {
    what: "values of `checkpoint_id`",
    lines: /: refuses \{"checkpoint_id":"text"\} for body field (checkpoint|before)$/,
    because: "ids of checkpoints are UUIDs, so any other text is refused; the contract takes any text",
  },
  {
    what: "`ttl` of threads without minutes",
    lines: /: refuses \{("strategy":"\w+")?\} for body field ttl$/,
    because: "without minutes, `ttl` does not say how long a thread lives",
  },
  {
    what: "`checkpoint` of `POST /threads/{thread_id}/state/checkpoint`",
    lines: /\/state\/checkpoint: without required body field checkpoint$/,
    because: "a request without `checkpoint` means the latest one; the contract requires the field",
  },
  {
    what: "`checkpoint_id` of the update of a state and of runs",
    lines: new RegExp(
      String.raw`^POST /threads/\{thread_id\}/state: with body field checkpoint_id$|${CREATION}with body field checkpoint_id$`,
    ),
    because: "the clients send it as the short form of `checkpoint`",
  },
  {
    what: "answer to the update of a state",
    lines: /^POST \/threads\/\{thread_id\}\/state: with answer field (configurable|checkpoint_id)$/,
    because: "the SDK's type has them beside `checkpoint`",
  },
  {
    what: "`strict_resume` of runs",
    lines: new RegExp(`${CREATION}with body field strict_resume$`),
    because: "the SDK sends it since 1.15",
  },
  {
    what: "`on_disconnect` of runs in the background",
    lines: /^POST (\/threads\/\{thread_id\})?\/runs(\/batch)?: with body field on_disconnect$/,
    because: "the clients send the same payload to all paths that create runs; the field has no effect here",
  },
  {
    what: "fields of runs without a thread",
    lines: new RegExp(
      `${THREADLESS}with body field (interrupt_before|interrupt_after|checkpoint|multitask_strategy|if_not_exists|thread_id)$`,
    ),
    because: "RemoteGraph also sends them without a thread; `thread_id` in the body names a thread",
  },
  {
    what: "`reason` of cancellations, `checkpoint_id` of the stream of a run",
    lines:
      /^(POST .*\/cancel: with parameter query reason|GET .*\/stream: with parameter query checkpoint_id)$/,
    because: "the SDK sends it since 1.15",
  },
  {
    what: "`namespace` of the streams of runs",
    lines: /\/stream: with parameter query namespace$/,
    because: "the SDK sends it since 1.15",
  },
  {
    what: "`langsmith_session_name` of runs",
    lines: /: without answer field langsmith_session_name$/,
    because: "only LangSmith knows the project of a trace",
  },
  {
    what: "`langsmith_tracer` of runs",
    lines: new RegExp(`${CREATION}with body field langsmith_tracer$`),
    because: "the SDK sends it",
  },
  {
    what: "`error`, `run_started_at`, `run_ended_at`, `available_at`, `cancel_reason`, `graph_id`, `attempts` and `lost_attempts` of runs",
    lines:
      /\/runs(\/\{run_id\})?: with answer field (error|run_started_at|run_ended_at|available_at|cancel_reason|graph_id|attempts|lost_attempts)$/,
    because:
      "a run shows its graph, when it started and ended, until when it waits, its attempts, and why it failed",
  },
  {
    what: "`checkpoint_during` and `multitask_strategy` of crons",
    lines: /\/crons(\/\{cron_id\})?: with body field (checkpoint_during|multitask_strategy)$/,
    because: "the clients send them for every cron",
  },
  {
    what: "`enabled` of the count of crons",
    lines: /\/crons\/count: with body field enabled$/,
    because: "the count takes the same filter as the search",
  },
  {
    what: "`on_run_completed`, `timezone` and `now` of crons",
    lines: /\/crons(\/search|\/\{cron_id\})?: with answer field (on_run_completed|timezone|now)$/,
    because: "the contract names them as values of `select`, or the clients' types have them",
  },
  {
    what: "`error` of crons",
    lines: /\/crons(\/search|\/\{cron_id\})?: with answer field error$/,
    because: "it says that the assistant of the cron is gone",
  },
  {
    what: "`ttl` and `expires_at` of items of the store",
    lines: /^GET \/store\/items: with answer field (ttl|expires_at)$/,
    because: "an item shows when it expires, so a client that stores it again can keep its time to live",
  },
  {
    what: "`last_event_id` of streams",
    lines: /\/stream: with parameter query last_event_id$/,
    because:
      "the `Location` of a stream has it, for a client that lost its connection before the first event",
  },
  {
    what: "`/info`",
    lines: /^GET \/info: with answer field (threadloom_version|langgraph_js_version|context|host)$/,
    because: "it has the fields of the JavaScript server, and the fields that Agent Inbox reads",
  },
  {
    what: "`/docs`",
    lines: /^GET \/docs: is not there$/,
    because: "the server has this page, but leaves it out of the description, because it is for people",
  },
  {
    what: "`PATCH /threads/{thread_id}/state`",
    lines: /^PATCH \/threads\/\{thread_id\}\/state: is not in the contract$/,
    because: "the JavaScript SDK calls it (`threads.patchState`)",
  },
  {
    what: "`GET /runs/{run_id}/stream`",
    lines: /^GET \/runs\/\{run_id\}\/stream: is not in the contract$/,
    because: "the JavaScript SDK calls it (`runs.joinStream` without a thread)",
  },
  {
    what: "`POST /ui/{assistant_id}` and the files that its answer names",
    lines: /^(POST|GET) \/ui\/.*: is not in the contract$/,
    because: "front ends load components of generative user interfaces there (`LoadExternalComponent`)",
  },
  {
    what: "`/webhooks/deliveries`",
    lines: /^(GET|POST) \/webhooks\/deliveries\/\S+: is not in the contract$/,
    because: "clients can list deliveries of webhooks and send them again; the hosted service keeps none",
  },
  {
    what: "`POST /runs/search` and `GET /runs/summary`",
    lines: /^(POST \/runs\/search|GET \/runs\/summary): is not in the contract$/,
    because: "runs can be searched and counted over all threads, failed ones for example",
  },
  {
    what: "`GET /queue`",
    lines: /^GET \/queue: is not in the contract$/,
    because: "clients can see which runs wait, by graph and by thread, and which servers execute runs",
  },
  {
    what: "`GET /usage`, and traces of runs",
    lines: /^GET \/(usage|threads\/\{thread_id\}\/runs\/\{run_id\}\/trace): is not in the contract$/,
    because: "clients can see what a run did, and sum the tokens of models; the hosted service has LangSmith",
  },
  {
    what: "`cursor` of lists",
    lines:
      /^(POST \/(threads|assistants|runs\/crons)\/search: with body field|GET \/threads\/\{thread_id\}\/runs: with parameter query) cursor$/,
    because:
      "a client can request the next page without an offset, so changes between two pages move no record",
  },
  {
    what: "messages of MCP and A2A",
    lines:
      /^POST \/(mcp\/|a2a\/\{assistant_id\}): with(out (parameter|required|body|answer|status)| status 422)/,
    because: "their specifications describe them, in several revisions; a refusal has a status of its own",
  },
  {
    what: "agent cards of A2A",
    lines: /^GET \/(a2a\/\{assistant_id\}\/)?\.well-known\/agent-card\.json: is not in the contract$/,
    because: "clients look for cards there; the contract does not mention them",
  },
  {
    what: "`/agui/{assistant_id}`",
    lines: /^POST \/agui\/\{assistant_id\}(\/cancel)?: is not in the contract$/,
    because: "front ends of AG-UI call assistants there; the hosted service does not speak AG-UI",
  },
];
