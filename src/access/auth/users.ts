import { storableObject } from "../../platform/domain/json-schemas.ts";
import type { JsonObject } from "../../platform/lib/json.ts";
import type { Caller } from "../caller.ts";

export type UserCaller = Extract<Caller, { kind: "user" }>;

/** Bounded because each run of the user carries it. */
const CHARACTERS_AT_MOST = 100_000;

/** The handler's answer names no user. */
export class NoIdentityError extends Error {
  override readonly name = "NoIdentityError";
}

/** Converted to JSON, because it is stored with runs and sent to graph processes. */
const jsonOf = (user: unknown): JsonObject => {
  let text: string;
  try {
    text = JSON.stringify(user);
  } catch (cause) {
    throw new NoIdentityError("the returned user is no JSON", { cause });
  }
  if (text.length > CHARACTERS_AT_MOST) {
    throw new NoIdentityError(`the returned user has more than ${CHARACTERS_AT_MOST} characters of JSON`);
  }
  const storable = storableObject.safeParse(JSON.parse(text));
  if (storable.success) return storable.data;
  throw new NoIdentityError(`the returned user ${storable.error.issues[0]?.message ?? ""}`);
};

/** Accepts an identity, or an object with an `identity`. Throws `NoIdentityError` with a sentence for the log. */
export const userOf = (answer: unknown): UserCaller => {
  const given: unknown = typeof answer === "string" ? { identity: answer } : answer;
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new NoIdentityError(
      "authentication answered no identity: return a text, or an object with 'identity'",
    );
  }
  const said = given as Record<string, unknown>;
  const { identity, permissions = [], display_name: name, is_authenticated: isAuthenticated } = said;
  if (typeof identity !== "string" || identity === "") {
    throw new NoIdentityError("the 'identity' of the returned user must be a text that is not empty");
  }
  const isList = Array.isArray(permissions) && permissions.every((one) => typeof one === "string");
  if (permissions !== null && !isList) {
    throw new NoIdentityError("the 'permissions' of the returned user must be a list of texts");
  }
  const user = jsonOf({
    ...said,
    identity,
    permissions: permissions ?? [],
    display_name: name ?? identity,
    is_authenticated: isAuthenticated ?? true,
  });
  return Object.freeze({
    kind: "user",
    identity,
    permissions: Object.freeze([...((permissions ?? []) as string[])]),
    user,
  });
};
