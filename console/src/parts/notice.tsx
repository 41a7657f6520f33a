import type { ReactNode } from "react";
import { messageOf } from "../server/connection.tsx";

/** What went wrong, in the server's own sentence; nothing if nothing did. Screen readers say it at once. */
export const ErrorNotice = ({ error, onRetry }: { error: unknown; onRetry?: (() => void) | undefined }) =>
  error == null ? null : (
    <div role="alert" className="notice bad">
      <p>{messageOf(error)}</p>
      {onRetry !== undefined && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );

/** Says above a form that some of its fields have no types yet. */
export const ReadingNotice = ({ schemas }: { schemas: { provisional?: true } | undefined }) =>
  schemas?.provisional === true ? (
    <p className="faint" role="status">
      Reading the types of this graph…
    </p>
  ) : null;

/** Stands where a list has nothing to show. */
export const Empty = ({ children }: { children: ReactNode }) => <p className="faint">{children}</p>;
