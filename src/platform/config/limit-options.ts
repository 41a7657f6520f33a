import ipaddr from "ipaddr.js";
import { z } from "zod";
import {
  byGraph,
  commaSeparated,
  list,
  megabytes,
  seconds,
  wholeNumber,
  type Option,
  type Options,
} from "./option.ts";

const perMinute = (what: string, standard: string, name: string): Option<number> => ({
  environment: [name],
  default: standard,
  ...wholeNumber(0, 1_000_000_000),
  description: `${what} a minute for each user or address. 0: no limit.`,
});

const RANGES = ["loopback", "linklocal", "uniquelocal"];
const isProxy = (text: string): boolean =>
  RANGES.includes(text) || ipaddr.isValid(text) || ipaddr.isValidCIDR(text);

export const LIMIT_OPTIONS = {
  readsPerMinute: perMinute("Read requests", "3000", "RATE_LIMIT_READS"),
  searchesPerMinute: perMinute("Searches, counts and histories", "600", "RATE_LIMIT_SEARCHES"),
  writesPerMinute: perMinute("Write requests", "1200", "RATE_LIMIT_WRITES"),
  runsPerMinute: perMinute("Runs", "600", "RATE_LIMIT_RUNS"),
  streamsPerMinute: perMinute("Streams, WebSockets and joins", "600", "RATE_LIMIT_STREAMS"),
  failedLoginsPerMinute: {
    environment: ["RATE_LIMIT_FAILED_LOGINS"],
    default: "600",
    ...wholeNumber(0, 1_000_000_000),
    description: "Requests a minute from one address with wrong or missing credentials. 0: no limit.",
  },
  keyFactor: {
    environment: ["LIMITS_KEY_FACTOR"],
    default: "20",
    ...wholeNumber(1, 1_000_000),
    description: "An API key, which stands for an application, has this many times the limits of a user.",
  },
  pendingRunsPerThread: {
    environment: ["PENDING_RUNS_PER_THREAD"],
    default: "100",
    ...wholeNumber(0, 1_000_000),
    description:
      "Waiting runs of a user on one thread. All other callers may have LIMITS_KEY_FACTOR times as many. 0: no limit.",
  },
  pendingRunsPerCaller: {
    environment: ["PENDING_RUNS_PER_CALLER"],
    default: "1000",
    ...wholeNumber(0, 1_000_000),
    description: "Waiting runs of a user on all servers. 0: no limit.",
  },
  runningRunsPerCaller: {
    environment: ["MAX_RUNNING_RUNS_PER_CALLER"],
    default: "0",
    ...wholeNumber(0, 1_000_000),
    description:
      "Running runs of a user on all servers; more wait. Set it alike on all servers. 0: no limit.",
  },
  runningRunsByGraph: {
    environment: ["MAX_RUNNING_RUNS_BY_GRAPH"],
    default: "",
    ...byGraph("runs", "agent=20,research=2", 1, 1_000_000),
    description: "Running runs of a graph on all servers: agent=20,research=2. Set it alike on all servers.",
  },
  cronsPerCaller: {
    environment: ["MAX_CRONS_PER_CALLER"],
    default: "100",
    ...wholeNumber(0, 1_000_000),
    description: "Crons of a user. 0: no limit.",
  },
  streamsPerCaller: {
    environment: ["STREAMS_PER_CALLER"],
    default: "100",
    ...wholeNumber(0, 1_000_000),
    description:
      "Open streams, WebSockets, their subscriptions and waiting requests of a user or an address. 0: no limit.",
  },
  accessCheckSeconds: {
    environment: ["ACCESS_CHECK_SECONDS"],
    default: "60",
    ...wholeNumber(1, 86_400),
    description:
      "Seconds between two checks whether a user still has access to an open stream, WebSocket or waiting request.",
  },
  streamsAtMost: {
    environment: ["STREAMS_MAX"],
    default: "10000",
    ...wholeNumber(1, 1_000_000),
    description: "Open streams, WebSockets and waiting requests of this process.",
  },
  connectionsAtMost: {
    environment: ["CONNECTIONS_MAX"],
    default: "15000",
    ...wholeNumber(10, 1_000_000),
    description: "Open connections of this process. More are closed at once.",
  },
  listenBacklog: {
    environment: ["LISTEN_BACKLOG"],
    default: "4096", // Linux's bound since 5.4; with Node's 511 the kernel refused 304 to 444 of 2,000 connections
    ...wholeNumber(1, 65_535),
    description: "New connections that wait in the kernel. Linux holds at most net.core.somaxconn.",
  },
  stateValueCharactersAtMost: {
    environment: ["STATE_VALUE_MAX_MB"],
    default: "64",
    ...megabytes(0.001, 200), // the limit of state/values/encoding.ts
    description: "Largest value in a thread's state, in megabytes of JSON. A run with a larger one fails.",
  },
  eventCharactersAtMost: {
    environment: ["EVENT_MAX_MB"],
    default: "64",
    ...megabytes(0.001, 200),
    description: "Largest event that a run may send, in megabytes. A run with a larger one fails.",
  },
  trustedProxies: {
    environment: ["TRUSTED_PROXIES"],
    default: "",
    expected:
      "a list of addresses or networks (10.0.0.0/8) separated by commas, or loopback, linklocal, uniquelocal",
    schema: z
      .string()
      .refine((text) => list(text).every(isProxy))
      .pipe(commaSeparated.schema),
    description:
      "Proxies whose X-Forwarded-For is trusted: addresses, networks (10.0.0.0/8), loopback, linklocal or uniquelocal, " +
      "separated by commas.",
  },
  headersTimeoutSeconds: {
    environment: ["HEADERS_TIMEOUT_SECONDS"],
    default: "20",
    ...seconds(1, 3_600),
    description: "Seconds in which the headers of a request must arrive.",
  },
  requestTimeoutSeconds: {
    environment: ["REQUEST_TIMEOUT_SECONDS"],
    default: "60",
    ...seconds(1, 3_600),
    description: "Seconds in which a whole request must arrive. At least HEADERS_TIMEOUT_SECONDS.",
  },
  keepAliveSeconds: {
    environment: ["KEEP_ALIVE_SECONDS"],
    default: "72", // longer than a load balancer's 60 s, or it sends into a closed connection
    ...seconds(1, 3_600),
    description: "Seconds that an idle connection stays open between two requests.",
  },
} satisfies Options;
