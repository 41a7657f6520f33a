import { signInOf, type SignIn } from "../http/sign-in.ts";
import type { Config } from "../platform/config/config.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../platform/lib/json.ts";

/** What a person at the terminal wants to know once the server is up. */
export interface BannerFacts {
  config: Config;
  /** How callers show who they are: "API keys", "auth"; none: the server is open. */
  ways: readonly string[];
  /** What `auth` of langgraph.json reads; for the first request. */
  signIn?: SignIn | undefined;
  /** Where the server listens, e.g. `http://127.0.0.1:8123`. */
  address: string;
  /** Folder of the embedded PostgreSQL; undefined: the one of `config.databaseUrl`. */
  embeddedFolder: string | undefined;
  graphs: readonly string[];
  /** Whether there is a page at `/console`. */
  hasConsole: boolean;
  /** JSON schema of what the first graph takes; undefined if it isn't known, as of a factory. */
  inputSchema?: JsonObject | undefined;
}

/** Host, port and name of a database, without user and password. */
export const databaseName = (connectionString: string): string => {
  const { host, pathname, searchParams } = new URL(connectionString);
  return `${host === "" ? (searchParams.get("host") ?? "localhost") : host}${pathname}`;
};

/** The address as somebody on this machine can call it: nobody can connect to "all addresses". */
export const callable = (address: string): string =>
  address.replace("//0.0.0.0", "//127.0.0.1").replace("//[::]", "//[::1]");

/** To a graph of which nothing is known: it answers that in its own way, and none is asked what it is not for. */
const MESSAGES: JsonValue = [{ role: "user", content: "Hello" }];
/** By type, where any value of the type will do. */
const EXAMPLES = new Map<JsonValue | undefined, JsonValue>([
  ["string", "example"],
  ["integer", 1],
  ["number", 1],
  ["boolean", true],
]);
/** On one line, which a person is to read. */
const KEYS_SHOWN = 5;

const HEADER_NAME = /^[\w-]+$/;

/**
 * An input that the first graph takes: a message, else a few keys of which an example is easily found. Any key may be
 * left out, so what has a default or is made of other things is.
 */
const exampleInput = (schema: JsonObject | undefined): JsonObject => {
  // The state of most graphs has messages; if that of an unknown one has not, the answer says so.
  if (schema === undefined || !isJsonObject(schema.properties)) return { messages: MESSAGES };
  const properties = Object.entries(schema.properties).flatMap(([key, property]) =>
    isJsonObject(property) ? [{ key, property }] : [],
  );
  const chat = properties.find(({ property }) => property.langgraph_type === "messages");
  if (chat !== undefined) return { [chat.key]: MESSAGES };
  const examples = properties.flatMap(({ key, property }): [string, JsonValue][] => {
    if (property.default !== undefined) return [];
    const example = Array.isArray(property.enum) ? property.enum[0] : EXAMPLES.get(property.type);
    return example === undefined ? [] : [[key, example]];
  });
  return Object.fromEntries(examples.slice(0, KEYS_SHOWN));
};

/** Within single quotes a shell takes everything as it is but these. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** In a header of the request: a key in $API_KEY, else what users have in $TOKEN. */
const headerText = ({ ways, signIn }: BannerFacts): string => {
  if (ways.length === 0) return "";
  if (ways.includes("API keys") || signIn === undefined) return ' -H "x-api-key: $API_KEY"';
  const { header, prefix } = HEADER_NAME.test(signIn.header) ? signIn : signInOf({});
  return ` -H "${header.toLowerCase()}: ${prefix}$TOKEN"`;
};

/** A first request that works by copy and paste, once there is what its header names. */
const firstRequest = (facts: BannerFacts): string[] => {
  const { address, graphs, inputSchema } = facts;
  const header = headerText(facts);
  const post = (path: string, body: unknown) => [
    `curl -N ${callable(address)}${path}${header} \\`,
    `  -H 'content-type: application/json' -d ${quoted(JSON.stringify(body))}`,
  ];
  const [graph] = graphs;
  return graph === undefined
    ? post("/assistants/search", {})
    : post("/runs/stream", {
        assistant_id: graph,
        input: exampleInput(inputSchema),
        stream_mode: ["updates"],
      });
};

/** The lines that are printed when the server is up. */
export const bannerText = (facts: BannerFacts): string => {
  const { config, hasConsole, ways, address, embeddedFolder, graphs } = facts;
  const database =
    embeddedFolder === undefined
      ? `PostgreSQL at ${databaseName(config.databaseUrl ?? "")}`
      : `embedded PostgreSQL in ${embeddedFolder}`;
  const here = callable(address);
  const shown = here === address ? address : `${address} (every address of this machine; from here: ${here})`;
  const entries = ways.map((way) => (way === "auth" ? "what auth of langgraph.json asks for" : "an API key"));
  const access = entries.length === 0 ? "open: there are no API keys" : `with ${entries.join(", or ")}`;
  const rows = [
    ["Address", `${shown}${config.role === "all" ? "" : ` (role: ${config.role})`}`],
    ...(hasConsole ? [["Console", `${callable(address)}/console`]] : []),
    ["Docs", `${callable(address)}/docs`],
    ["Graphs", graphs.join(", ")],
    ["Database", database],
    ["Access", access],
  ].map(([name, value]) => `  ${name!.padEnd(10)}${value}`);
  const request =
    config.role === "worker" ? [] : ["", "  Try it:", ...firstRequest(facts).map((line) => `  ${line}`)];
  return ["", "Threadloom is ready.", "", ...rows, ...request, "", ""].join("\n");
};
