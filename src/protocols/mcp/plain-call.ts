import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  isJsonContentType,
  isSpecType,
  PROTOCOL_VERSION_META_KEY,
  type ClientCapabilities,
} from "@modelcontextprotocol/server";
import { isJsonObject, type JsonObject } from "../../platform/lib/json.ts";
import { ownField } from "../../platform/lib/names.ts";
import type { MessageRequest } from "./exchange.ts";

const REVISION = "2026-07-28";

export interface PlainCall {
  id: string | number;
  name: string;
  arguments: JsonObject;
  capabilities: ClientCapabilities;
}

const hasOnly = (object: JsonObject, ...names: readonly string[]): boolean =>
  Object.keys(object).every((name) => names.includes(name));

const capabilitiesIn = (meta: JsonObject): ClientCapabilities | undefined => {
  const { [CLIENT_INFO_META_KEY]: client, [CLIENT_CAPABILITIES_META_KEY]: capabilities } = meta;
  if (!hasOnly(meta, PROTOCOL_VERSION_META_KEY, CLIENT_INFO_META_KEY, CLIENT_CAPABILITIES_META_KEY))
    return undefined;
  if (ownField(meta, PROTOCOL_VERSION_META_KEY) !== REVISION || !isSpecType.Implementation(client))
    return undefined;
  return isSpecType.ClientCapabilities(capabilities) ? (capabilities as ClientCapabilities) : undefined;
};

/**
 * A call of the newest revision that has all that it must have, and nothing else. The package's exchange would cost it a
 * tenth of a short run's CPU. Undefined for another message, which the package answers or refuses.
 */
export const readPlainCall = ({ headers }: MessageRequest, message: unknown): PlainCall | undefined => {
  if (!isJsonObject(message) || !hasOnly(message, "jsonrpc", "id", "method", "params")) return undefined;
  const { jsonrpc, id, method, params } = message;
  if (jsonrpc !== "2.0" || method !== "tools/call" || !isJsonObject(params)) return undefined;
  if (typeof id !== "string" && !Number.isSafeInteger(id)) return undefined;
  const { name, arguments: given = {}, _meta: meta } = params;
  if (!hasOnly(params, "name", "arguments", "_meta") || !isJsonObject(given)) return undefined;
  const isAsInHeaders =
    headers.get("mcp-protocol-version") === REVISION &&
    headers.get("mcp-method") === method &&
    headers.get("mcp-name") === name &&
    isJsonContentType(headers.get("content-type"));
  const capabilities = isAsInHeaders && isJsonObject(meta) ? capabilitiesIn(meta) : undefined;
  if (capabilities === undefined) return undefined;
  return { id: id as string | number, name: name as string, arguments: given, capabilities };
};
