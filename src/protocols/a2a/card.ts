import { AgentCard } from "@a2a-js/sdk";
import type { AssistantService } from "../../api/assistants/service.ts";
import { API_KEY, type ApiSecurity } from "../../http/sign-in.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../platform/lib/json.ts";
import { ownField } from "../../platform/lib/names.ts";
import type { AgentRequest } from "./request.ts";

export interface CardParts {
  /** Undefined for a server that needs no key. */
  security(): ApiSecurity | undefined;
  /** Whether the server sends push notifications. */
  pushes: boolean;
}

const MODES = ["text/plain", "application/json"];
const SKILLS_AT_MOST = 100;

const textsOf = (value: JsonValue | undefined): string[] =>
  Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];

/** OpenAPI's form of a scheme in A2A's. Undefined for a type that A2A does not have. */
const schemeOf = (scheme: unknown): JsonObject | undefined => {
  if (!isJsonObject(scheme)) return undefined;
  const { type, in: location, ...rest } = scheme;
  switch (type) {
    case "apiKey":
      return { apiKeySecurityScheme: { ...rest, location: location ?? "header" } };
    case "http":
      return { httpAuthSecurityScheme: rest };
    case "oauth2":
      return { oauth2SecurityScheme: rest };
    case "openIdConnect":
      return { openIdConnectSecurityScheme: rest };
    default:
      return undefined;
  }
};

const securityOf = ({ securitySchemes = API_KEY, security }: ApiSecurity): JsonObject => {
  const schemes = Object.entries(securitySchemes).flatMap(([name, scheme]): [string, JsonObject][] => {
    const known = schemeOf(scheme);
    return known === undefined ? [] : [[name, known]];
  });
  const required = security ?? schemes.map(([name]) => ({ [name]: [] }));
  return {
    securitySchemes: Object.fromEntries(schemes),
    securityRequirements: required.map((alternative) => ({
      schemes: Object.fromEntries(
        Object.entries(alternative).map(([name, scopes]) => [name, { list: textsOf(scopes as JsonValue) }]),
      ),
    })),
  };
};

interface Skill {
  id: string;
  name: string;
  description: string;
}

const LISTS = ["tags", "examples", "inputModes", "outputModes"];

/** Metadata may hold anything, so only fields of the right type are shown. */
const skillOf = (skill: JsonObject, own: Skill): JsonObject => ({
  ...own,
  ...Object.fromEntries(Object.entries(skill).filter(([, value]) => typeof value === "string")),
  ...Object.fromEntries(LISTS.map((name) => [name, textsOf(ownField(skill, name))])),
});

/** `metadata.a2a.skills` of the assistant, or one skill that its description describes. */
const skillsOf = (metadata: JsonObject, own: Skill) => {
  const { skills } = isJsonObject(metadata.a2a) ? metadata.a2a : {};
  const named = Array.isArray(skills) ? skills.filter(isJsonObject).slice(0, SKILLS_AT_MOST) : [];
  return (named.length === 0 ? [{}] : named).map((skill) => skillOf(skill, own));
};

export const createCards = (assistants: AssistantService, { security, pushes }: CardParts) => ({
  /** Throws `not_found` for an assistant that the caller may not read. */
  async of({
    caller,
    assistantId,
    address,
  }: Pick<AgentRequest, "caller" | "assistantId" | "address">): Promise<AgentCard> {
    const assistant = await assistants.get(caller, assistantId);
    const { assistant_id: id, name, version, metadata } = assistant;
    const description = assistant.description ?? `The assistant '${name}'.`;
    const url = `${address()}/a2a/${id}`;
    const guarded = security();
    return AgentCard.fromJSON({
      name,
      description,
      version: String(version),
      supportedInterfaces: [
        { url, protocolBinding: "JSONRPC", protocolVersion: "1.0" },
        { url, protocolBinding: "JSONRPC", protocolVersion: "0.3" },
      ],
      capabilities: { streaming: true, pushNotifications: pushes, extendedAgentCard: true },
      defaultInputModes: MODES,
      defaultOutputModes: MODES,
      skills: skillsOf(metadata, { id: "run", name, description }),
      ...(guarded === undefined ? {} : securityOf(guarded)),
    });
  },
});
