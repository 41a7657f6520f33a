import { malformed } from "../../platform/domain/errors.ts";
import { addressFor } from "../ui/fragment.ts";

type Headers = Parameters<typeof addressFor>[0];

const WELL_KNOWN = "/.well-known/oauth-protected-resource";
/** Both places of RFC 9728: behind the resource's path, and for the whole server. */
export const METADATA_PATHS = [WELL_KNOWN, `${WELL_KNOWN}/mcp`] as const;

const serverAddress = (headers: Headers): string => {
  const address = addressFor(headers);
  if (address === undefined) throw malformed("The request has no Host that clients could call.");
  // Without a proxy's word the scheme is unknown; only this machine is called without TLS.
  return address.startsWith("//") ? `https:${address}` : address;
};

/** RFC 9728: who issues the tokens for this resource. */
export const resourceMetadata = (
  headers: Headers,
  mountPrefix: string,
  authorizationServers: readonly string[],
): object => ({
  resource: `${serverAddress(headers)}${mountPrefix}/mcp`,
  authorization_servers: authorizationServers,
  bearer_methods_supported: ["header"],
});

/** For `WWW-Authenticate`; undefined if the request names no host. */
export const challengeOf = (headers: Headers, mountPrefix: string): string | undefined => {
  if (addressFor(headers) === undefined) return undefined;
  return `Bearer resource_metadata="${serverAddress(headers)}${mountPrefix}${WELL_KNOWN}/mcp"`;
};
