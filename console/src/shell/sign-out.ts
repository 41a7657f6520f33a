import { createContext, useContext } from "react";

export interface SignOut {
  /** E.g. `API key`. */
  noun: string;
  signOut(): void;
}

const SignOutContext = createContext<SignOut | undefined>(undefined);
export const SignOutProvider = SignOutContext.Provider;

/** Undefined if the server required no credentials. */
export const useSignOut = (): SignOut | undefined => useContext(SignOutContext);
