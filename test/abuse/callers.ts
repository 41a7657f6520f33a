/** Who asks: headers that say so. */
export type Credentials = Readonly<Record<string, string>>;

/** What a server is started with, and who there is to ask it. */
export interface Callers {
  /** The configuration beside this file, and what the server's environment has more. */
  config: string;
  environment: Record<string, string>;
  /** Who does what a normal caller does, and who means harm. */
  normal: Credentials;
  hostile: Credentials;
  /** Of threads and what is done to them. */
  owners: readonly [Credentials, ...Credentials[]];
  /** Who else asks for those: with a key, under another name, without any, with a wrong one. */
  others: readonly Credentials[];
}

const KEY = "a-key-for-abuse";
const ANN = { authorization: "Bearer ann-token" };
const BOB = { authorization: "Bearer bob-token" };

/** So high that nobody is refused, but counted. */
const ENOUGH = "100000000";
const RATES = ["READS", "SEARCHES", "WRITES", "RUNS", "STREAMS"].map((name) => [
  `RATE_LIMIT_${name}`,
  ENOUGH,
]);

/** Two users of an `Auth` and the operator's key, each request authenticated, filtered and counted. */
export const USERS: Callers = {
  config: "langgraph-users.json",
  environment: { API_KEYS: KEY, ...(Object.fromEntries(RATES) as Record<string, string>) },
  normal: BOB,
  hostile: ANN,
  owners: [ANN, BOB],
  others: [ANN, BOB, { "x-api-key": KEY }, {}, { authorization: "Bearer nobody" }, { "x-api-key": "wrong" }],
};

/** Everybody may do everything. */
export const NOBODY: Callers = {
  config: "langgraph.json",
  environment: {},
  normal: {},
  hostile: {},
  owners: [{}],
  others: [{}],
};
