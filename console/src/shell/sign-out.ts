import { createContext, useContext } from "react";

/** How who has signed in gets out again. */
export interface SignOut {
  /** What was given, e.g. `API key`. */
  noun: string;
  signOut(): void;
}

const SignOutContext = createContext<SignOut | undefined>(undefined);
export const SignOutProvider = SignOutContext.Provider;

/** Undefined if the server wanted nothing. */
export const useSignOut = (): SignOut | undefined => useContext(SignOutContext);
