export interface ApiSecurity {
  securitySchemes?: Record<string, unknown> | undefined;
  security?: Record<string, unknown>[] | undefined;
}

export const API_KEY = { apiKey: { type: "apiKey", in: "header", name: "X-Api-Key" } } as const;

export interface SignIn {
  noun: string;
  header: string;
  /** Prepended to the header's value. */
  prefix: string;
}

/** The first scheme that is a header; every other flow ends in a token. */
export const signInOf = (schemes: Record<string, unknown> = API_KEY): SignIn => {
  const all = Object.values(schemes) as { type?: unknown; in?: unknown; name?: unknown }[];
  const header = all.find(({ type, in: place }) => type === "apiKey" && place === "header")?.name;
  if (typeof header !== "string") return { noun: "token", header: "Authorization", prefix: "Bearer " };
  return { noun: schemes === API_KEY ? "API key" : "credential", header, prefix: "" };
};
