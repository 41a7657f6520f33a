import { z } from "zod";
import type { ObjectStoreSetup } from "../database/object-store.ts";
import { DEFAULT_SCHEMA, isSchemaName } from "../database/schema.ts";
import { parseKeys, type EncryptionSetup } from "../encryption/cipher.ts";
import {
  BYTES_PER_MEGABYTE,
  commaSeparated,
  flag,
  list,
  oneOf,
  seconds,
  text,
  wholeNumber,
  type Option,
  type Options,
  type ValuesOf,
} from "./option.ts";
import type { ProjectKeys } from "./project-keys.ts";
import { EXECUTION_OPTIONS, LIMIT_OPTIONS, type CONSTANTS, type derivedFrom } from "./run-options.ts";

export const isPostgresUrl = (value: string): boolean =>
  URL.canParse(value) && ["postgres:", "postgresql:"].includes(new URL(value).protocol);

export const DATABASE_OPTIONS = {
  databaseUrl: {
    environment: ["DATABASE_URL", "DATABASE_URI", "POSTGRES_URI"],
    secret: true,
    expected: "a URL like postgresql://user:password@host:5432/database",
    schema: z.string().refine(isPostgresUrl).optional(),
    description:
      "PostgreSQL to use: postgresql://user:password@host:5432/database. Not set: an embedded PostgreSQL.",
  },
  databaseDirectUrl: {
    environment: ["DATABASE_DIRECT_URL"],
    secret: true,
    expected: "a URL like postgresql://user:password@host:5432/database",
    schema: z.string().refine(isPostgresUrl).optional(),
    description: "The same database past a transaction pooler (docs/scaling.md).",
  },
  databaseWaitSeconds: {
    environment: ["DATABASE_WAIT_SECONDS"],
    default: "60",
    ...seconds(0, 3_600),
    description:
      "Seconds that a start waits for an unreachable database. Errors such as a wrong password end the start at once.",
  },
  /** Excludes the connections of the listener and the heartbeat. */
  databasePoolSize: {
    environment: ["DATABASE_POOL_SIZE", "LANGGRAPH_POSTGRES_POOL_MAX_SIZE"],
    default: "20",
    ...wholeNumber(2, 1_000),
    description: "Most database connections of this process and its graph processes together.",
  },
  databasePreparedStatements: {
    environment: ["DATABASE_PREPARED_STATEMENTS"],
    default: "true",
    ...flag,
    description: "false: for a transaction pooler without prepared statements.",
  },
  databaseSchema: {
    environment: ["DATABASE_SCHEMA"],
    default: DEFAULT_SCHEMA,
    expected: "a name of at most 40 lower case letters, digits and _ that does not begin with a digit or pg_",
    schema: z.string().refine(isSchemaName),
    description:
      "Schema of the tables, created at the first start. Deployments can share a database, each with its own schema.",
  },
} satisfies Options;

export const unusedDataWarning = (
  namesFolder: boolean,
  databaseUrl: string | undefined,
): string | undefined =>
  namesFolder && databaseUrl !== undefined
    ? "The database is not in --data: it is named by its address, as by DATABASE_URL. Only schemas of graphs are kept there."
    : undefined;

/** Base64. */
const KEYS = {
  expected: "keys of 16, 24 or 32 bytes, or of 64 hexadecimal digits, separated by commas",
  schema: z.string().transform((text, context): readonly string[] => {
    const keys = text === "" ? [] : parseKeys(text);
    if (keys !== undefined) return keys.map((key) => key.toString("base64"));
    context.addIssue({ code: "custom", message: "no keys" });
    return z.NEVER;
  }),
  secret: true,
} as const;

/** The server searches by these keys, or the hosted service leaves them unencrypted. */
const ALWAYS_OPEN =
  /^(langgraph_.*|graph_id|assistant_id|thread_id|run_id|cron_id|checkpoint_id|task_id|created_by|source|step|parents|run_attempt|owner|tenant_id)$/;

export const ENCRYPTION_OPTIONS = {
  encryptionKeys: {
    environment: ["LANGGRAPH_AES_KEY"],
    default: "",
    ...KEYS,
    description:
      "Encrypts states, events, inputs, configurations and store items (AES-256-GCM). With several keys, separated by " +
      "commas, the first encrypts and all decrypt. Make one with: openssl rand -hex 32",
  },
  encryptedMetadataKeys: {
    environment: ["LANGGRAPH_AES_JSON_KEYS"],
    default: "",
    ...commaSeparated,
    expected:
      "names of metadata, separated by commas, but none that the server needs, such as graph_id or langgraph_version",
    schema: z
      .string()
      .transform(list)
      .refine((names) => !names.some((name) => ALWAYS_OPEN.test(name))),
    description:
      "Metadata keys whose values are encrypted too, separated by commas. Searches can't use these values.",
  },
} satisfies Options;

export const encryptionOf = (config: ValuesOf<typeof ENCRYPTION_OPTIONS>): EncryptionSetup => ({
  keys: config.encryptionKeys,
  metadataKeys: config.encryptedMetadataKeys,
});

const isBucketUrl = (value: string): boolean =>
  URL.canParse(value) && new URL(value).protocol === "s3:" && new URL(value).hostname !== "";
const isHttpUrl = (value: string): boolean =>
  URL.canParse(value) && ["http:", "https:"].includes(new URL(value).protocol);

export const OBJECT_STORE_OPTIONS = {
  objectStoreUrl: {
    environment: ["OBJECT_STORE_URL"],
    expected: "a bucket like s3://bucket or s3://bucket/folder",
    schema: z.string().refine(isBucketUrl).optional(),
    description:
      "Bucket of S3 or of a compatible store to which servers move large values of states: s3://bucket/folder. Not set: " +
      "they stay in the database. Needs the package @aws-sdk/client-s3; credentials as for each program of AWS.",
  },
  objectStoreEndpoint: {
    environment: ["OBJECT_STORE_ENDPOINT", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"],
    expected: "an address like https://host:9000",
    schema: z.string().refine(isHttpUrl).optional(),
    description: "Address of a store other than AWS, such as MinIO.",
  },
  objectStoreRegion: {
    environment: ["OBJECT_STORE_REGION", "AWS_REGION", "AWS_DEFAULT_REGION"],
    expected: "the name of a region, such as eu-central-1",
    schema: z.string().min(1).optional(),
    description: "Region of the bucket.",
  },
} satisfies Options;

/** Undefined without a bucket. */
export const objectStoreOf = (config: ValuesOf<typeof OBJECT_STORE_OPTIONS>): ObjectStoreSetup | undefined =>
  config.objectStoreUrl === undefined
    ? undefined
    : {
        url: config.objectStoreUrl,
        endpoint: config.objectStoreEndpoint,
        region: config.objectStoreRegion,
      };

/** Characters. Shorter secrets can be guessed. */
const SECRET_LENGTH_AT_LEAST = 16;

export const WEBHOOK_OPTIONS = {
  webhookSecrets: {
    environment: ["WEBHOOK_SECRETS"],
    default: "",
    secret: true,
    expected: `a list of secrets separated by commas, each of at least ${SECRET_LENGTH_AT_LEAST} characters`,
    schema: z
      .string()
      .transform(list)
      .pipe(z.array(z.string().min(SECRET_LENGTH_AT_LEAST)).max(10)),
    description:
      "Secrets that sign webhooks as in Standard Webhooks (whsec_ and base64, or any text), separated by commas. Each " +
      "signs. Not set: no signature.",
  },
} satisfies Options;

const PYTHON_LEVELS = new Map([
  ["warning", "warn"],
  ["critical", "fatal"],
]);

const FORMATS_OF_LOG_JSON = new Map([
  ["true", "json"],
  ["false", "pretty"],
]);

const TABLE = {
  graphConfigFile: {
    flag: "config",
    shortFlag: "c",
    environment: ["LANGGRAPH_CONFIG"],
    default: "langgraph.json",
    ...text("a path"),
    description: "File that names the graphs.",
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
  apiKeys: {
    environment: ["API_KEYS"],
    default: "",
    secret: true,
    ...commaSeparated,
    description:
      "API keys, separated by commas, beside those of 'threadloom keys create'. Callers send one as X-Api-Key. Without " +
      "keys and auth the server is open to everyone who can connect.",
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
    environment: ["BODY_LIMIT_MB"],
    default: "16",
    expected: "a number of megabytes from 0.001 to 200", // a jsonb value may have 256 MB
    schema: z
      .string()
      .pipe(z.coerce.number<string>().min(0.001).max(200))
      .transform((megabytes) => Math.round(megabytes * BYTES_PER_MEGABYTE)),
    description: "Largest request body in megabytes. All large bodies at one time: four times as much.",
  },
  ...LIMIT_OPTIONS,
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
    expected: "pretty or json, or true or false for LOG_JSON of the hosted service",
    schema: z
      .string()
      .transform((format) => FORMATS_OF_LOG_JSON.get(format.toLowerCase()) ?? format)
      .pipe(z.enum(["pretty", "json"])),
    description: "pretty or json. Not set: pretty on a terminal and in threadloom dev, otherwise json.",
  },
} satisfies Options;

export type OptionName = keyof typeof TABLE;

export const OPTIONS: Readonly<Record<OptionName, Option<unknown>>> = TABLE;

export type Config = ValuesOf<typeof TABLE> &
  Readonly<typeof CONSTANTS & ReturnType<typeof derivedFrom>> & {
    /** Read from several variables. */
    readonly projectKeys: ProjectKeys;
  };
