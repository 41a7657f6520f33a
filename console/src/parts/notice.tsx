import { CircleAlert } from "lucide-react";
import type { ReactNode } from "react";
import { messageOf } from "../server/connection.tsx";
import styles from "./notice.module.css";

export const ErrorNotice = ({ error, onRetry }: { error: unknown; onRetry?: (() => void) | undefined }) =>
  error == null ? null : (
    <div role="alert" className={`notice bad ${styles.error}`}>
      <CircleAlert aria-hidden size={16} strokeWidth={1.75} />
      <p>{messageOf(error)}</p>
      {onRetry !== undefined && (
        <button type="button" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );

/** Shown while the schemas are provisional. */
export const ReadingNotice = ({ schemas }: { schemas: { provisional?: true } | undefined }) =>
  schemas?.provisional === true ? (
    <p className="faint" role="status">
      Reading the types of this graph…
    </p>
  ) : null;

export const Empty = ({ children }: { children: ReactNode }) => <p className="faint">{children}</p>;
