import { QueryClientProvider, type QueryClient } from "@tanstack/react-query";
import { useEffect, useState, type FormEvent, type ReactNode } from "react";
import { isAuthError, statusOf } from "../server/api-error.ts";
import { connect, ConnectionProvider, messageOf, type Connection } from "../server/connection.tsx";
import { forgetKey, keepKey, readSignIn, storedKey, type SignIn } from "../server/credentials.ts";
import { createQueries } from "../server/queries.ts";
import { SignOutProvider } from "./sign-out.ts";
import styles from "./sign-in.module.css";

type State =
  | { kind: "connecting" }
  | { kind: "asking"; signIn: SignIn; refusal: string | undefined }
  | { kind: "failed"; message: string }
  | {
      kind: "connected";
      connection: Connection;
      queries: QueryClient;
      signIn: SignIn;
      key: string | undefined;
    };

/** A 401 without a key is the normal first answer, not an error. */
const asking = (signIn: SignIn, key: string | undefined, error: unknown): State => {
  const isFirstTry = key === undefined && statusOf(error) === 401;
  return { kind: "asking", signIn, refusal: isFirstTry ? undefined : messageOf(error) };
};

const enter = async (key: string | undefined, onExpired: (next: State) => void): Promise<State> => {
  try {
    const signIn = await readSignIn();
    // A 403 may concern only one operation, so check the credentials themselves.
    let checking: Promise<void> | undefined;
    const checkAgain = (): void => {
      checking ??= connect(signIn, key)
        .then(
          () => undefined,
          (error: unknown) => (isAuthError(error) ? onExpired(asking(signIn, key, error)) : undefined),
        )
        .finally(() => {
          checking = undefined;
        });
    };
    try {
      const connection = await connect(signIn, key);
      if (key !== undefined) keepKey(key);
      return { kind: "connected", connection, queries: createQueries(checkAgain), signIn, key };
    } catch (error) {
      if (!isAuthError(error)) throw error;
      return asking(signIn, key, error);
    }
  } catch (error) {
    return { kind: "failed", message: messageOf(error) };
  }
};

export const SignInGate = ({ children }: { children: ReactNode }) => {
  const [state, setState] = useState<State>({ kind: "connecting" });
  const tryWith = (key: string | undefined): void => {
    const onExpired = (next: State): void => {
      if (storedKey() !== key) return;
      forgetKey();
      setState(next);
    };
    void enter(key, onExpired).then(setState);
  };
  useEffect(() => tryWith(storedKey()), []);

  switch (state.kind) {
    case "connecting":
      return null;
    case "failed":
      return (
        <main className={styles.signIn}>
          <h1>Threadloom</h1>
          <p role="alert">The server can&apos;t be reached: {state.message}</p>
          <button type="button" onClick={() => tryWith(storedKey())}>
            Try again
          </button>
        </main>
      );
    case "asking":
      return <SignInForm {...state} onKey={tryWith} />;
    case "connected": {
      const signOut = (): void => {
        forgetKey();
        // The next user must not see the data of this one.
        setState({ kind: "connecting" });
        tryWith(undefined);
      };
      return (
        <ConnectionProvider value={state.connection}>
          <QueryClientProvider client={state.queries}>
            <SignOutProvider
              value={state.key === undefined ? undefined : { noun: state.signIn.noun, signOut }}
            >
              {children}
            </SignOutProvider>
          </QueryClientProvider>
        </ConnectionProvider>
      );
    }
  }
};

interface SignInFormProps {
  signIn: SignIn;
  refusal: string | undefined;
  onKey(key: string): void;
}

const SignInForm = ({ signIn: { noun, header, prefix }, refusal, onKey }: SignInFormProps) => {
  const [key, setKey] = useState("");
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    onKey(key.trim());
  };
  return (
    <main className={styles.signIn}>
      <h1>Threadloom</h1>
      <form onSubmit={submit}>
        <label htmlFor="key">Enter your {noun} for this server</label>
        <input
          id="key"
          type="password"
          autoComplete="off"
          autoFocus
          required
          value={key}
          aria-describedby="key-hint"
          onChange={({ target }) => setKey(target.value)}
        />
        <p id="key-hint" className="faint">
          Sent as the header{" "}
          <code>
            {header}: {prefix}…
          </code>
          , and kept until you close this tab.
        </p>
        {refusal !== undefined && <p role="alert">{refusal}</p>}
        <button type="submit" className="primary">
          Sign in
        </button>
      </form>
    </main>
  );
};
