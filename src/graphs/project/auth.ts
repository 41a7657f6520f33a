import { z } from "zod";
import { jsonObject } from "../../platform/domain/json-schemas.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import { exportOf, type NamedExport } from "./http.ts";

export interface AuthConfig extends NamedExport {
  /** Accepts callers that claim to be Studio without a check. Only an explicit `disable_studio_auth: false` sets it. */
  letsStudioIn: boolean;
  /** Describes authentication to clients. */
  openapi: { securitySchemes?: JsonObject | undefined; security?: JsonObject[] | undefined } | undefined;
  cache: { headers: string[]; ttlSeconds: number; maxSize: number } | undefined;
}

const CACHE_SECONDS = 60;
const CACHE_SIZE = 1_000;

export const authSchema = z
  .object({
    path: z.string().min(1).nullish(),
    disable_studio_auth: z.boolean().nullish(),
    openapi: z
      .object({
        securitySchemes: jsonObject.optional(),
        security: z.array(jsonObject as z.ZodType<JsonObject>).optional(),
      })
      .nullish(),
    cache: z
      .object({
        cache_keys: z.array(z.string().min(1)).min(1),
        ttl_seconds: z.number().positive().max(86_400).nullish(),
        max_size: z.int().min(1).max(100_000).nullish(),
      })
      .nullish(),
  })
  .nullish();

/** Undefined without handlers. Paths are relative to langgraph.json. */
export const authConfigOf = (auth: z.output<typeof authSchema>, folder: string): AuthConfig | undefined => {
  const { path: reference, disable_studio_auth: isStudioOut, openapi, cache } = auth ?? {};
  if (typeof reference !== "string") return undefined;
  return {
    ...exportOf(reference, folder),
    letsStudioIn: isStudioOut === false,
    openapi: openapi ?? undefined,
    cache:
      cache == null
        ? undefined
        : {
            headers: cache.cache_keys.map((name) => name.toLowerCase()),
            ttlSeconds: cache.ttl_seconds ?? CACHE_SECONDS,
            maxSize: cache.max_size ?? CACHE_SIZE,
          },
  };
};
