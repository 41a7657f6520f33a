import { readFileSync } from "node:fs";
import { HTTPException } from "@langchain/langgraph-sdk/auth";
import {
  createLocalJWKSet,
  errors,
  jwtVerify,
  type JSONWebKeySet,
  type JWTPayload,
  type JWTVerifyGetKey,
} from "jose";

/**
 * The JSON Web Tokens of an identity provider. JWT_AUDIENCE: who they are made out to. JWT_KEYS_FILE: the provider's
 * public keys, a JSON Web Key Set (`createRemoteJWKSet(url)` of jose keeps itself up to date); or JWT_SECRET: the secret that they
 * are signed with, of 32 bytes or more.
 */
const {
  JWT_AUDIENCE: audience,
  JWT_ISSUER: issuer,
  JWT_KEYS_FILE: file,
  JWT_SECRET: secret = "",
} = process.env;
if (audience === undefined) throw new Error("JWT_AUDIENCE is not set: tokens for anybody would be taken.");
if (file === undefined && secret.length < 32)
  throw new Error("Set JWT_KEYS_FILE, or JWT_SECRET with 32 bytes.");

const keyOf: JWTVerifyGetKey =
  file === undefined
    ? async () => new TextEncoder().encode(secret)
    : createLocalJWKSet(JSON.parse(readFileSync(file, "utf8")) as JSONWebKeySet);
/** Never what the token itself says: with a public key as its secret, anybody could sign. */
const algorithms = file === undefined ? ["HS256"] : ["RS256", "ES256", "EdDSA"];

export const refusal = (message: string): HTTPException =>
  new HTTPException(401, { message, headers: { "WWW-Authenticate": "Bearer" } });

/** The claims of the request's token; throws a 401 if there is none, or no good one. */
export const verifyToken = async (request: Request): Promise<JWTPayload> => {
  const token = /^Bearer (.+)$/.exec(request.headers.get("authorization") ?? "")?.[1];
  if (token === undefined) throw refusal("Send a token: Authorization: Bearer.");
  try {
    const options = { audience, algorithms, requiredClaims: ["sub", "exp"], ...(issuer && { issuer }) };
    return (await jwtVerify(token, keyOf, options)).payload;
  } catch (error) {
    // What is open is asked about again: an expired token ends it, too.
    throw refusal(error instanceof errors.JWTExpired ? "The token has expired." : "The token is not valid.");
  }
};
