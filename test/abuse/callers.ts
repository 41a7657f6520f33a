export type Credentials = Readonly<Record<string, string>>;

export interface Callers {
  /** The configuration beside this file, and additional environment variables of the server. */
  config: string;
  environment: Record<string, string>;
  /** The normal caller, and the hostile one. */
  normal: Credentials;
  hostile: Credentials;
  owners: readonly [Credentials, ...Credentials[]];
  /** Other callers of those threads: with a key, as another user, without credentials, with wrong ones. */
  others: readonly Credentials[];
}

const KEY = "a-key-for-abuse";
const ANN = { authorization: "Bearer ann-token" };
const BOB = { authorization: "Bearer bob-token" };

/** So high that no request is refused, but all are counted. */
const ENOUGH = "100000000";

/** Two users of an `Auth` and the operator's key, each request authenticated, filtered and counted. */
export const USERS: Callers = {
  config: "langgraph-users.json",
  environment: { API_KEYS: KEY, RATE_LIMIT_REQUESTS: ENOUGH, RATE_LIMIT_RUNS: ENOUGH },
  normal: BOB,
  hostile: ANN,
  owners: [ANN, BOB],
  others: [ANN, BOB, { "x-api-key": KEY }, {}, { authorization: "Bearer nobody" }, { "x-api-key": "wrong" }],
};

/** Every caller may do everything. */
export const NOBODY: Callers = {
  config: "langgraph.json",
  environment: {},
  normal: {},
  hostile: {},
  owners: [{}],
  others: [{}],
};
