/**
 * What the server wants to see of a caller, and what was given to the page. It stays in the session of the tab, under the name that
 * the page of the API's documentation uses, too: who signs in there is signed in here.
 */
const STORED = "threadloom-api-key";

/** As `/console/sign-in.json` says: the header that takes credentials, what stands before them, and what they are called. */
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
export const forgetKey = (): void => sessionStorage.removeItem(STORED);

/** The headers of every request. A whole header can be written where its first word names a scheme: `Bearer …`, `Basic …`. */
export const credentialHeaders = (
  { header, prefix }: SignIn,
  key: string | undefined,
): Record<string, string> => {
  if (key === undefined) return {};
  const namesScheme = header === "Authorization" ? /^[\w-]+ +\S/.test(key) : /^Bearer /i.test(key);
  return namesScheme ? { Authorization: key } : { [header]: prefix + key };
};
