import type { Config } from "../platform/config/config.ts";

export interface BannerFacts {
  config: Config;
  /** Ways to authenticate: "API keys", "auth". Empty: the server is open. */
  ways: readonly string[];
  address: string;
  /** Undefined: the database of `config.databaseUrl`. */
  embeddedFolder: string | undefined;
  graphs: readonly string[];
  hasConsole: boolean;
}

/** Without the password. */
export const databaseName = (connectionString: string): string => {
  const { host, pathname, searchParams } = new URL(connectionString);
  return `${host === "" ? (searchParams.get("host") ?? "localhost") : host}${pathname}`;
};

/** Replaces "all addresses", which clients can't connect to, with loopback. */
export const callable = (address: string): string =>
  address.replace("//0.0.0.0", "//127.0.0.1").replace("//[::]", "//[::1]");

const headerText = (ways: readonly string[]): string => {
  if (ways.length === 0) return "";
  return ways.includes("API keys") ? ' -H "x-api-key: $API_KEY"' : ' -H "authorization: Bearer $TOKEN"';
};

/** Most graphs have messages. Other graphs answer with an error that explains the input. */
const firstRequest = ({ address, graphs: [graph = ""], ways }: BannerFacts): string[] => {
  const input = { messages: [{ role: "user", content: "Hello" }] };
  const body = JSON.stringify({ assistant_id: graph, input, stream_mode: ["updates"] });
  return [
    `curl -N ${callable(address)}/runs/stream${headerText(ways)} \\`,
    `  -H 'content-type: application/json' -d '${body.replaceAll("'", "'\\''")}'`,
  ];
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
