import { z } from "zod";
import { optional, storableText, uuid } from "../../platform/domain/json-schemas.ts";
import { omitOptionalNulls, type RunAgentInput } from "@ag-ui/core";
import { validated } from "../../http/validation.ts";
import { isObject } from "../../platform/lib/json.ts";

const NAME_CHARACTERS = 1_000;

const runId = storableText.min(1).max(NAME_CHARACTERS);

export const agentPath = z.object({
  assistant_id: storableText
    .min(1)
    .describe("An assistant's id, or a graph id for the graph's own assistant."),
});

/** The protocol's package checks the other fields: its schemas are loaded with the first request. */
export const agentInput = z
  .looseObject({
    threadId: uuid.describe("The conversation. A missing thread is created."),
    runId: runId.describe("Repeating a request with the same id joins its run."),
    forwardedProps: z.unknown().optional(),
    protocolVersion: z.string().optional().describe("`1.0`. Absent: the client speaks the older dialect."),
  })
  .meta({ id: "RunAgentInput" });
export type AgentInput = z.output<typeof agentInput>;

export const cancelBody = z.object({
  threadId: uuid,
  runId: optional(runId).describe("Without it, all unfinished runs of the thread are cancelled."),
});

const MEDIA = new Set(["image", "audio", "video"]);

/** Clients before 1.0 send all media as `binary`. */
const modernPart = (part: unknown): unknown => {
  if (!isObject(part) || part["type"] !== "binary") return part;
  const { mimeType, url, data, id } = part;
  const [kind = ""] = String(mimeType).split("/");
  const source =
    typeof data === "string"
      ? { type: "data", value: data, mimeType }
      : typeof url === "string"
        ? { type: "url", value: url, mimeType }
        : { type: "file", value: id, mimeType };
  return { type: MEDIA.has(kind) ? kind : "document", source };
};

const modernMessage = (message: unknown): unknown => {
  if (!isObject(message)) return message;
  // Clients before 1.0 send null for missing fields.
  const given = Object.fromEntries(Object.entries(message).filter(([, value]) => value !== null));
  const { content } = given;
  return Array.isArray(content) ? { ...given, content: content.map(modernPart) } : given;
};

const modernized = ({ messages, ...input }: AgentInput): RunAgentInput => {
  const modern = Array.isArray(messages) ? messages.map(modernMessage) : messages;
  return omitOptionalNulls({ ...input, messages: modern } as unknown as RunAgentInput, "RunAgentInput");
};

/** The reader of a request's input throws `invalid`. It loads the schemas once: a repeated `import()` costs CPU. */
export const createInputReader = () => {
  const load = async () => (await import("@ag-ui/core/schemas")).RunAgentInputSchema;
  let loaded: ReturnType<typeof load> | undefined;
  return async (body: AgentInput): Promise<RunAgentInput> =>
    validated(await (loaded ??= load()), modernized(body), "The body");
};

/** 1.0, or the older dialect of clients that name no version. */
export const speaksOne = ({ protocolVersion }: Pick<RunAgentInput, "protocolVersion">): boolean =>
  protocolVersion !== undefined && !protocolVersion.startsWith("0.");

/** `forwardedProps`, as the client of LangGraph's own AG-UI package fills it. */
export const forwarded = ({ forwardedProps }: RunAgentInput): Record<string, unknown> =>
  isObject(forwardedProps) ? forwardedProps : {};
