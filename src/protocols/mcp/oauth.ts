import { addressFor, publicAddress, type Headers } from "../../http/public-address.ts";

const WELL_KNOWN = "/.well-known/oauth-protected-resource";
/** Both places of RFC 9728: behind the resource's path, and for the whole server. */
export const METADATA_PATHS = [WELL_KNOWN, `${WELL_KNOWN}/mcp`] as const;

/** RFC 9728: who issues the tokens for this resource. */
export const resourceMetadata = (
  headers: Headers,
  mountPrefix: string,
  authorizationServers: readonly string[],
): object => ({
  resource: `${publicAddress(headers)}${mountPrefix}/mcp`,
  authorization_servers: authorizationServers,
  bearer_methods_supported: ["header"],
});

/** For `WWW-Authenticate`; undefined if the request names no host. */
export const challengeOf = (headers: Headers, mountPrefix: string): string | undefined => {
  if (addressFor(headers) === undefined) return undefined;
  return `Bearer resource_metadata="${publicAddress(headers)}${mountPrefix}${WELL_KNOWN}/mcp"`;
};
