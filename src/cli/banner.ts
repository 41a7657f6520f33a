import type { Config } from "../config/config.ts";

/** What a person at the terminal wants to know once the server is up. */
export interface BannerFacts {
  config: Config;
  /** Where the server listens, e.g. `http://127.0.0.1:8123`. */
  address: string;
  /** Folder of the embedded PostgreSQL; undefined: the one of `config.databaseUrl`. */
  embeddedFolder: string | undefined;
  graphs: readonly string[];
}

/** Host, port and name of a database, without user and password. */
export const databaseName = (connectionString: string): string => {
  const { host, pathname, searchParams } = new URL(connectionString);
  return `${host === "" ? (searchParams.get("host") ?? "localhost") : host}${pathname}`;
};

/** The address as somebody on this machine can call it: nobody can connect to "all addresses". */
const callable = (address: string): string =>
  address.replace("//0.0.0.0", "//127.0.0.1").replace("//[::]", "//[::1]");

/** A first request that works by copy and paste (with a key of the server's in $API_KEY, if it wants one). */
const firstRequest = ({ config, address, graphs }: BannerFacts): string[] => {
  const header = config.apiKeys.length === 0 ? "" : ' -H "x-api-key: $API_KEY"';
  const post = (path: string, body: unknown) => [
    `curl -N ${callable(address)}${path}${header} \\`,
    `  -H 'content-type: application/json' -d '${JSON.stringify(body)}'`,
  ];
  const [graph] = graphs;
  // The state of most graphs has messages; if this one's has not, the answer says so.
  const messages = [{ role: "user", content: "What is 6 * 7?" }];
  return graph === undefined
    ? post("/assistants/search", {})
    : post("/runs/stream", { assistant_id: graph, input: { messages }, stream_mode: ["updates"] });
};

/** The lines that are printed when the server is up. */
export const bannerText = (facts: BannerFacts): string => {
  const { config, address, embeddedFolder, graphs } = facts;
  const database =
    embeddedFolder === undefined
      ? `PostgreSQL at ${databaseName(config.databaseUrl ?? "")}`
      : `embedded PostgreSQL in ${embeddedFolder}`;
  const here = callable(address);
  const shown = here === address ? address : `${address} (every address of this machine; from here: ${here})`;
  const access = config.apiKeys.length === 0 ? "open: no API keys are set" : "with an API key";
  const rows = [
    ["Address", `${shown}${config.role === "all" ? "" : ` (role: ${config.role})`}`],
    ["Docs", `${callable(address)}/docs`],
    ["Graphs", graphs.join(", ")],
    ["Database", database],
    ["Access", access],
  ].map(([name, value]) => `  ${name!.padEnd(10)}${value}`);
  const request =
    config.role === "worker" ? [] : ["", "  Try it:", ...firstRequest(facts).map((line) => `  ${line}`)];
  return ["", "Threadloom is ready.", "", ...rows, ...request, "", ""].join("\n");
};
