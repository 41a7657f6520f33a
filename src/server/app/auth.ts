import { createAuthenticateUsers, type ApiKeys, type Authenticate } from "../../access/api-keys.ts";
import { createUserAuthentication } from "../../access/auth/authenticate.ts";
import { createDecisions, readHandlers } from "../../access/auth/decisions.ts";
import {
  createAssertKnown,
  createAuthorize,
  type AssertKnown,
  type Authorize,
} from "../../access/authorize.ts";
import { systemAssistantId } from "../../platform/domain/assistant-ids.ts";
import { createModuleLoader } from "../../graphs/modules.ts";
import type { ApiSecurity } from "../../http/sign-in.ts";
import type { Logger } from "../../platform/lib/logger.ts";
import type { AuthConfig } from "../../graphs/project/auth.ts";
import { GraphLoadError, type GraphEntry } from "../../graphs/project/langgraph-json.ts";

export interface Access {
  authenticate: Authenticate;
  authorize: Authorize;
  assertKnown: AssertKnown;
  /** Changes while the server runs, because API keys come and go. */
  readonly isGuarded: boolean;
  /** For the log. */
  readonly ways: readonly string[];
  security: ApiSecurity | undefined;
}

/** @throws GraphLoadError for an invalid module or export */
export const loadHandlers = async ({ file, exportName }: AuthConfig): ReturnType<typeof handlersIn> => {
  const subject = "auth.path";
  const entry = { id: "auth", file, exportName, description: undefined, subject };
  const modules = await createModuleLoader([entry]);
  const { exported } = await modules.load(entry);
  return await handlersIn(exported, `${subject} (${file}): '${exportName}'`);
};

const handlersIn = async (exported: unknown, subject: string) => {
  const handlers = readHandlers(await exported);
  if (typeof handlers === "string") throw new GraphLoadError(`${subject} ${handlers}.`);
  return handlers;
};

const logOpenRoutes = ({ letsStudioIn }: AuthConfig, uncovered: readonly string[], logger: Logger): void => {
  if (uncovered.length > 0) {
    logger.warn(
      { events: uncovered },
      "no handler of auth covers these events, so every user may do them with all records",
    );
  }
  if (letsStudioIn) {
    logger.warn(
      "auth.disable_studio_auth is false: callers with the header 'x-auth-scheme: langsmith' are let in as Studio " +
        "without a check; the handlers of auth decide what Studio may do",
    );
  }
};

/** The default of an `Auth` without `openapi`. */
const BEARER: ApiSecurity = {
  securitySchemes: { token: { type: "http", scheme: "bearer" } },
  security: [{ token: [] }],
};

/** Undefined: API keys. */
export const securityOf = (auth: AuthConfig | undefined): ApiSecurity | undefined =>
  auth === undefined ? undefined : (auth.openapi ?? BEARER);

interface AccessParts {
  auth: AuthConfig | undefined;
  entries: readonly Pick<GraphEntry, "id">[];
  apiKeys: ApiKeys;
  /** Metadata keys with encrypted values. */
  encryptedKeys: ReadonlySet<string> | undefined;
  logger: Logger;
}

export const openAccess = async (parts: AccessParts): Promise<Access> => {
  const { auth, entries, apiKeys, encryptedKeys, logger } = parts;
  const handlers = auth && (await loadHandlers(auth));
  if (auth !== undefined && handlers !== undefined) logOpenRoutes(auth, handlers.uncovered, logger);
  const decisions = handlers && createDecisions(handlers, { encryptedKeys });
  return {
    authenticate:
      auth === undefined || handlers === undefined
        ? apiKeys.authenticate
        : createAuthenticateUsers(apiKeys, createUserAuthentication({ ...auth, handlers, logger })),
    authorize: createAuthorize({
      keys: apiKeys,
      decisions,
      systemAssistantIds: entries.map(({ id }) => systemAssistantId(id)),
      logger,
    }),
    assertKnown: createAssertKnown({ keys: apiKeys, decisions }),
    get isGuarded() {
      return auth !== undefined || apiKeys.areAsked;
    },
    get ways() {
      return [...(apiKeys.areAsked ? ["API keys"] : []), ...(auth === undefined ? [] : ["auth"])];
    },
    security: securityOf(auth),
  };
};
