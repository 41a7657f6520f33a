import { isObject } from "../is-object.ts";

export interface ApiRequest {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** With encoded values, e.g. `/threads/search`. */
  path: string;
  /** A JSON value. */
  body?: unknown;
}

export interface Target {
  apiUrl: string;
  /** Undefined: the server wants no key. `prefix`: before the key, e.g. `Bearer `. */
  key: { header: string; prefix: string } | undefined;
}

export interface Snippets {
  curl: string;
  javascript: string;
  python: string;
}

type Fields = Readonly<Record<string, unknown>>;

/** Within single quotes, a POSIX shell replaces nothing. */
const shellText = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** Systems refuse longer arguments. */
const ARGUMENT_AT_MOST = 100_000;

const curlOf = ({ method, path, body }: ApiRequest, { apiUrl, key }: Target): string => {
  // curl would take brackets for a list of addresses.
  const url = `${apiUrl}${path}`.replace(/[[\]{}]/g, encodeURIComponent);
  const json = body === undefined ? undefined : JSON.stringify(body);
  const parts = [`curl${method === "GET" ? "" : ` -X ${method}`} ${shellText(url)}`];
  if (key !== undefined) parts.push(`-H "${key.header}: ${key.prefix}$API_KEY"`);
  if (json === undefined) return parts.join(" \\\n  ");
  parts.push(`-H 'Content-Type: application/json'`);
  if (json.length <= ARGUMENT_AT_MOST) return [...parts, `--data-raw ${shellText(json)}`].join(" \\\n  ");
  return `${[...parts, "--data-binary @- <<'END'"].join(" \\\n  ")}\n${json}\nEND`;
};

const indented = (
  parts: readonly string[],
  [open, close]: readonly [string, string],
  indent: string,
): string =>
  parts.length === 0
    ? `${open}${close}`
    : `${open}\n${parts.map((part) => `${indent}  ${part},\n`).join("")}${indent}${close}`;

const IDENTIFIER = /^[a-z_$][\w$]*$/i;

const javascriptKey = (key: string): string => {
  // A plain `__proto__` would set the prototype.
  if (key === "__proto__") return `["__proto__"]`;
  return IDENTIFIER.test(key) ? key : JSON.stringify(key);
};

const javascriptValue = (value: unknown, indent = ""): string => {
  const inner = `${indent}  `;
  if (Array.isArray(value))
    return indented(
      value.map((item) => javascriptValue(item, inner)),
      ["[", "]"],
      indent,
    );
  if (!isObject(value)) return JSON.stringify(value) ?? "undefined";
  const parts = Object.entries(value).map(
    ([key, item]) => `${javascriptKey(key)}: ${javascriptValue(item, inner)}`,
  );
  return parts.length === 0 ? "{}" : indented(parts, ["{", "}"], indent);
};

const PYTHON_WORDS: ReadonlyMap<unknown, string> = new Map<unknown, string>([
  [true, "True"],
  [false, "False"],
  [null, "None"],
]);

const pythonValue = (value: unknown, indent = ""): string => {
  const inner = `${indent}  `;
  if (Array.isArray(value))
    return indented(
      value.map((item) => pythonValue(item, inner)),
      ["[", "]"],
      indent,
    );
  if (!isObject(value)) return PYTHON_WORDS.get(value) ?? JSON.stringify(value) ?? "None";
  return indented(
    Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${pythonValue(item, inner)}`),
    ["{", "}"],
    indent,
  );
};

/** A method of the official clients, which both name alike. */
interface ClientMethod {
  javascript: string;
  python: string;
  /** Undefined: the request goes without a client, which would drop a field. */
  argumentsOf(ids: readonly string[], body: Fields): { positional: string[]; named: Fields } | undefined;
}

const RUN_FIELDS: ReadonlySet<string> = new Set([
  ...["input", "command", "config", "context", "metadata", "checkpoint", "checkpoint_id", "webhook"],
  ...[
    "interrupt_before",
    "interrupt_after",
    "multitask_strategy",
    "if_not_exists",
    "after_seconds",
    "durability",
  ],
  ...["stream_mode", "stream_subgraphs", "stream_resumable", "on_disconnect", "on_completion"],
]);

const ofRun: ClientMethod["argumentsOf"] = ([threadId], { assistant_id: assistantId, ...named }) =>
  typeof assistantId === "string" && Object.keys(named).every((field) => RUN_FIELDS.has(field))
    ? { positional: [threadId ?? "", assistantId], named }
    : undefined;

const ofIds: ClientMethod["argumentsOf"] = (positional, body) =>
  Object.keys(body).length === 0 ? { positional: [...positional], named: {} } : undefined;

const ID = "([\\w-]+)";
const METHODS: readonly (readonly [route: RegExp, ClientMethod])[] = [
  [
    new RegExp(`^POST /threads/${ID}/runs$`),
    { javascript: "runs.create", python: "runs.create", argumentsOf: ofRun },
  ],
  [
    new RegExp(`^POST /threads/${ID}/runs/wait$`),
    { javascript: "runs.wait", python: "runs.wait", argumentsOf: ofRun },
  ],
  [
    new RegExp(`^GET /threads/${ID}/runs/${ID}$`),
    { javascript: "runs.get", python: "runs.get", argumentsOf: ofIds },
  ],
  [
    new RegExp(`^GET /threads/${ID}$`),
    { javascript: "threads.get", python: "threads.get", argumentsOf: ofIds },
  ],
  [
    new RegExp(`^GET /threads/${ID}/state$`),
    { javascript: "threads.getState", python: "threads.get_state", argumentsOf: ofIds },
  ],
  [
    new RegExp(`^GET /assistants/${ID}$`),
    { javascript: "assistants.get", python: "assistants.get", argumentsOf: ofIds },
  ],
];

const camelCase = (name: string): string =>
  name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());

const clientCall = ({ method, path, body = {} }: ApiRequest) => {
  for (const [route, client] of METHODS) {
    const found = route.exec(`${method} ${path}`);
    const given = found === null || !isObject(body) ? undefined : client.argumentsOf(found.slice(1), body);
    if (given !== undefined) return { ...client, ...given };
  }
  return undefined;
};

const javascriptOf = (request: ApiRequest, { apiUrl, key }: Target): string => {
  const { method, path, body } = request;
  const call = clientCall(request);
  const secret =
    key === undefined || key.prefix === ""
      ? "process.env.API_KEY"
      : `\`${key.prefix}\${process.env.API_KEY}\``;
  const headers = key === undefined ? [] : [`${JSON.stringify(key.header)}: ${secret}`];
  if (call === undefined) {
    if (body !== undefined) headers.push(`"Content-Type": "application/json"`);
    const options = [
      `method: ${JSON.stringify(method)}`,
      ...(headers.length === 0 ? [] : [`headers: { ${headers.join(", ")} }`]),
      ...(body === undefined ? [] : [`body: JSON.stringify(${javascriptValue(body, "  ")})`]),
    ];
    return [
      `const answer = await fetch(${JSON.stringify(apiUrl + path)}, ${indented(options, ["{", "}"], "")});`,
      "console.log(answer.status, await answer.text());",
    ].join("\n");
  }
  const options = [
    `apiUrl: ${JSON.stringify(apiUrl)}`,
    ...(headers.length === 0 ? [] : [`defaultHeaders: { ${headers.join(", ")} }`]),
  ];
  const named = Object.entries(call.named).map(
    ([name, value]) => `${camelCase(name)}: ${javascriptValue(value, "  ")}`,
  );
  const given = [
    ...call.positional.map((id) => JSON.stringify(id)),
    ...(named.length === 0 ? [] : [indented(named, ["{", "}"], "")]),
  ];
  return [
    `import { Client } from "@langchain/langgraph-sdk";`,
    "",
    `const client = new Client({ ${options.join(", ")} });`,
    `const answer = await client.${call.javascript}(${given.join(", ")});`,
    "console.log(answer);",
  ].join("\n");
};

const pythonOf = (request: ApiRequest, { apiUrl, key }: Target): string => {
  const { method, path, body } = request;
  const call = clientCall(request);
  const environment = key === undefined ? [] : ["import os"];
  const secret = `os.environ["API_KEY"]`;
  const headers =
    key === undefined
      ? []
      : [
          `headers={${JSON.stringify(key.header)}: ${key.prefix === "" ? "" : `${JSON.stringify(key.prefix)} + `}${secret}}`,
        ];
  if (call === undefined) {
    const given = [
      JSON.stringify(method),
      JSON.stringify(apiUrl + path),
      ...headers,
      ...(body === undefined ? [] : [`json=${pythonValue(body, "  ")}`]),
    ];
    return [
      ...environment,
      "import httpx",
      "",
      `answer = httpx.request(${indented(given, ["", ""], "")})`,
      "print(answer.status_code, answer.text)",
    ].join("\n");
  }
  const given = [
    ...call.positional.map((id) => JSON.stringify(id)),
    ...Object.entries(call.named).map(([name, value]) => `${name}=${pythonValue(value, "  ")}`),
  ];
  return [
    ...environment,
    "from langgraph_sdk import get_sync_client",
    "",
    `client = get_sync_client(${[`url=${JSON.stringify(apiUrl)}`, ...headers].join(", ")})`,
    `answer = client.${call.python}(${indented(given, ["", ""], "")})`,
    "print(answer)",
  ].join("\n");
};

/** The same request in three languages. The key is a variable of the environment. */
export const snippetsOf = (request: ApiRequest, target: Target): Snippets => ({
  curl: curlOf(request, target),
  javascript: javascriptOf(request, target),
  python: pythonOf(request, target),
});
