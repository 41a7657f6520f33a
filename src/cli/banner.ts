import { signInOf, type SignIn } from "../http/sign-in.ts";
import type { Config } from "../platform/config/config.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../platform/lib/json.ts";

export interface BannerFacts {
  config: Config;
  /** Ways to authenticate: "API keys", "auth". Empty: the server is open. */
  ways: readonly string[];
  signIn?: SignIn | undefined;
  address: string;
  /** Undefined: the database of `config.databaseUrl`. */
  embeddedFolder: string | undefined;
  graphs: readonly string[];
  hasConsole: boolean;
  /** JSON schema of the first graph's input; undefined if unknown, e.g. for a factory. */
  inputSchema?: JsonObject | undefined;
}

/** Without the password. */
export const databaseName = (connectionString: string): string => {
  const { host, pathname, searchParams } = new URL(connectionString);
  return `${host === "" ? (searchParams.get("host") ?? "localhost") : host}${pathname}`;
};

/** Replaces "all addresses", which clients can't connect to, with loopback. */
export const callable = (address: string): string =>
  address.replace("//0.0.0.0", "//127.0.0.1").replace("//[::]", "//[::1]");

const MESSAGES: JsonValue = [{ role: "user", content: "Hello" }];
const EXAMPLES = new Map<JsonValue | undefined, JsonValue>([
  ["string", "example"],
  ["integer", 1],
  ["number", 1],
  ["boolean", true],
]);
const KEYS_SHOWN = 5;

const HEADER_NAME = /^[\w-]+$/;

/** Every key of an input is optional. */
const exampleInput = (schema: JsonObject | undefined): JsonObject => {
  // Most graphs have messages. Other graphs answer with an error that explains the input.
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

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

const headerText = ({ ways, signIn }: BannerFacts): string => {
  if (ways.length === 0) return "";
  if (ways.includes("API keys") || signIn === undefined) return ' -H "x-api-key: $API_KEY"';
  const { header, prefix } = HEADER_NAME.test(signIn.header) ? signIn : signInOf({});
  return ` -H "${header.toLowerCase()}: ${prefix}$TOKEN"`;
};

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

export const bannerText = (facts: BannerFacts): string => {
  const { config, hasConsole, ways, address, embeddedFolder, graphs } = facts;
  const database =
    embeddedFolder === undefined
      ? `PostgreSQL at ${databaseName(config.databaseUrl ?? "")}`
      : `embedded PostgreSQL in ${embeddedFolder}`;
  const here = callable(address);
  const shown = here === address ? address : `${address} (every address of this machine; from here: ${here})`;
  const entries = ways.map((way) =>
    way === "auth" ? "the credentials of auth in langgraph.json" : "an API key",
  );
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
