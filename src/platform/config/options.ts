import { z } from "zod";
import { storableConfig } from "../domain/json-schemas.ts";
import type { ProjectKeys } from "./project-keys.ts";
import { WEBHOOK_OPTIONS } from "./webhook-options.ts";
import { DATABASE_OPTIONS } from "./database-options.ts";
import { ENCRYPTION_OPTIONS } from "./encryption-options.ts";
import { OBJECT_STORE_OPTIONS } from "./object-store-options.ts";
import { EXECUTION_OPTIONS } from "./execution-options.ts";
import { LIMIT_OPTIONS } from "./limit-options.ts";
import {
  BYTES_PER_MEGABYTE,
  commaSeparated,
  flag,
  oneOf,
  text,
  wholeNumber,
  type Option,
  type Options,
  type ValuesOf,
} from "./option.ts";

const isJson = (value: string): boolean => value.trimStart().startsWith("{");

const PYTHON_LEVELS = new Map([
  ["warning", "warn"],
  ["critical", "fatal"],
]);

const TABLE = {
  graphConfigFile: {
    flag: "config",
    shortFlag: "c",
    environment: ["LANGGRAPH_CONFIG"],
    translations: {
      LANGGRAPH_CONFIG: { expected: "a path", translate: (value) => (isJson(value) ? undefined : value) },
    },
    default: "langgraph.json",
    ...text("a path"),
    description: "File that names the graphs.",
  },
  assistantConfigs: {
    // The dev server puts JSON into this variable, which otherwise holds a path.
    environment: ["LANGGRAPH_CONFIG"],
    translations: {
      LANGGRAPH_CONFIG: {
        expected: 'a path, or JSON like {"agent": {"recursion_limit": 50}}',
        translate: (value) => (isJson(value) ? value : undefined),
      },
    },
    default: "{}",
    expected: "JSON",
    schema: z
      .string()
      .transform((json, context): unknown => {
        try {
          return JSON.parse(json);
        } catch (error) {
          context.addIssue({ code: "custom", message: (error as Error).message });
          return z.NEVER;
        }
      })
      .pipe(z.record(z.string(), storableConfig)),
    description:
      "As JSON: the config of each graph's own assistant, by graph id. A field context in it is the assistant's " +
      "context. Overrides langgraph.json.",
  },
  sourceSchemas: {
    environment: ["SOURCE_SCHEMAS"],
    default: "true",
    expected: "true, false or kept",
    schema: z.string().pipe(z.union([z.literal("kept"), z.stringbool()])),
    description:
      "true: a separate process reads schemas from TypeScript source after the start. kept: use only those that " +
      "'threadloom schemas' stored. false: neither.",
  },
  host: {
    flag: "host",
    environment: ["HOST"],
    default: "127.0.0.1",
    ...text("an address"),
    description: "Address to listen on. Any address but loopback needs API keys or auth.",
  },
  port: {
    flag: "port",
    shortFlag: "p",
    environment: ["PORT"],
    default: "8123",
    ...wholeNumber(0, 65_535),
    description: "Port to listen on. 0: any free port.",
  },
  dataFolder: {
    flag: "data",
    environment: ["THREADLOOM_DATA"],
    default: ".threadloom",
    ...text("a path"),
    description: "Folder of the embedded PostgreSQL and of the schemas read from source.",
  },
  role: {
    flag: "role",
    environment: ["ROLE"],
    default: "all",
    ...oneOf(["all", "api", "worker"]),
    description:
      "all: answer requests and execute runs. api: only answer requests. worker: only execute runs.",
  },
  unsafeNoAuth: {
    flag: "unsafe-no-auth",
    switch: true,
    environment: ["UNSAFE_NO_AUTH"],
    default: "false",
    ...flag,
    description: "Listen beyond loopback without API keys. Use it only behind something that checks access.",
  },
  noConsole: {
    flag: "no-console",
    switch: true,
    environment: ["NO_CONSOLE"],
    default: "false",
    ...flag,
    description:
      "No console at /console. http.disable_ui switches it off too, as does an address beyond loopback without API keys " +
      "or auth.",
  },
  unsafeIgnoreAuth: {
    flag: "unsafe-ignore-auth",
    switch: true,
    environment: ["UNSAFE_IGNORE_AUTH"],
    default: "false",
    ...flag,
    description:
      "Start without the auth handlers of langgraph.json. Use it only behind something that checks access.",
  },
  apiKeys: {
    environment: ["API_KEYS"],
    default: "",
    secret: true,
    ...commaSeparated,
    description:
      "API keys, separated by commas, beside those of 'threadloom keys create'. Callers send one as X-Api-Key. Without " +
      "keys and auth the server is open to everyone who can connect.",
  },
  apiKeysFile: {
    environment: ["API_KEYS_FILE"],
    expected: "a path",
    schema: z.string().optional(),
    description: "File with API keys, one per line; added to API_KEYS.",
  },
  ...DATABASE_OPTIONS,
  ...ENCRYPTION_OPTIONS,
  ...OBJECT_STORE_OPTIONS,
  ...EXECUTION_OPTIONS,
  ...WEBHOOK_OPTIONS,
  corsAllowOrigins: {
    environment: ["CORS_ALLOW_ORIGINS"],
    default: "", // empty: originsOf decides
    ...commaSeparated,
    description:
      "Origins whose pages may call the API, separated by commas. *: all. loopback: all on this machine. Not set: " +
      "http.cors of langgraph.json; else * with API keys, loopback without.",
  },
  allowedHosts: {
    environment: ["ALLOWED_HOSTS"],
    default: "",
    ...commaSeparated,
    description:
      "Host names of this server without API keys, separated by commas, beside those of loopback. .example.com: all " +
      "names below it. *: any.",
  },
  bodyLimitBytes: {
    environment: ["BODY_LIMIT_MB", "HTTP_MAX_REQUEST_BODY_BYTES"],
    translations: {
      HTTP_MAX_REQUEST_BODY_BYTES: {
        expected: "a number of bytes from 1000 to 200000000",
        translate: (bytes) => String(Number(bytes) / BYTES_PER_MEGABYTE),
      },
    },
    default: "16",
    expected: "a number of megabytes from 0.001 to 200", // a jsonb value may have 256 MB
    schema: z
      .string()
      .pipe(z.coerce.number<string>().min(0.001).max(200))
      .transform((megabytes) => Math.round(megabytes * BYTES_PER_MEGABYTE)),
    description: "Largest request body in megabytes. All large bodies at one time: four times as much.",
  },
  bodyElementsAtMost: {
    environment: ["BODY_ELEMENTS"],
    default: "250000",
    ...wholeNumber(1_000, 10_000_000),
    description: "Most list items and object members in a request body, on all levels together.",
  },
  ...LIMIT_OPTIONS,
  hostedMetricNames: {
    environment: ["METRICS_HOSTED_NAMES"],
    default: "false",
    ...flag,
    description:
      "true: /metrics also has the names of the hosted server (lg_api_…), so that its dashboards show this server.",
  },
  logLevel: {
    environment: ["LOG_LEVEL"],
    default: "info",
    ...oneOf(["trace", "debug", "info", "warn", "error", "fatal", "silent"]),
    // The hosted service takes Python's names of levels in capitals.
    schema: z
      .string()
      .transform((level) => PYTHON_LEVELS.get(level.toLowerCase()) ?? level.toLowerCase())
      .pipe(z.enum(["trace", "debug", "info", "warn", "error", "fatal", "silent"])),
    description: "Least severe level in the log: trace, debug, info, warn, error, fatal or silent.",
  },
  logContents: {
    environment: ["LOG_CONTENTS"],
    default: "false",
    ...flag,
    description:
      "true: the log has the messages of graph errors, which may contain user data. This is the default of " +
      "threadloom dev. false: the log has only class, code and stack.",
  },
  logFormat: {
    environment: ["LOG_FORMAT", "LOG_JSON"],
    translations: {
      LOG_JSON: {
        expected: "true or false",
        translate: (json) => ({ true: "json", false: "pretty" })[json.toLowerCase()] ?? json,
      },
    },
    ...oneOf(["pretty", "json"]),
    description: "pretty or json. Not set: pretty on a terminal and in threadloom dev, otherwise json.",
  },
} satisfies Options;

export type OptionName = keyof typeof TABLE;

export const OPTIONS: Readonly<Record<OptionName, Option<unknown>>> = TABLE;

export interface Config extends ValuesOf<typeof TABLE> {
  /** Read from several variables. */
  readonly projectKeys: ProjectKeys;
}
