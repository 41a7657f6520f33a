import { forgetTexts } from "./tab-storage.ts";

/** In the session storage of the tab, shared with the page of the API documentation. */
const STORED = "threadloom-api-key";

/** The answer of `/console/sign-in.json`. */
export interface SignIn {
  noun: string;
  header: string;
  prefix: string;
}

export const readSignIn = async (): Promise<SignIn> => {
  const answer = await fetch("./sign-in.json");
  if (!answer.ok) throw new Error(`The server no longer serves the console (HTTP ${answer.status}).`);
  return (await answer.json()) as SignIn;
};

export const storedKey = (): string | undefined => sessionStorage.getItem(STORED) ?? undefined;
export const keepKey = (key: string): void => sessionStorage.setItem(STORED, key);
export const forgetKey = (): void => {
  sessionStorage.removeItem(STORED);
  forgetTexts();
};

/** A key may also be a whole header value that begins with its scheme: `Bearer …`, `Basic …`. */
export const credentialHeaders = (
  { header, prefix }: SignIn,
  key: string | undefined,
): Record<string, string> => {
  if (key === undefined) return {};
  const namesScheme = header === "Authorization" ? /^[\w-]+ +\S/.test(key) : /^Bearer /i.test(key);
  return namesScheme ? { Authorization: key } : { [header]: prefix + key };
};
