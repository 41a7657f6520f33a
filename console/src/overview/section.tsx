import type { UseQueryResult } from "@tanstack/react-query";
import { useId, type ReactNode } from "react";
import { Skeleton } from "../design/skeleton.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { statusOf } from "../server/api-error.ts";
import { messageOf } from "../server/connection.tsx";
import styles from "./overview.module.css";

const FORBIDDEN = 403;

/** Trying again would not help a caller without the right. */
export const Refusal = ({ error, onRetry }: { error: Error; onRetry(): void }) =>
  statusOf(error) === FORBIDDEN ? (
    <p className="notice">You don't have the right to see this. {messageOf(error)}</p>
  ) : (
    <ErrorNotice error={error} onRetry={onRetry} />
  );

interface SectionProps<Data> {
  title: string;
  query: UseQueryResult<Data>;
  /** Renders the heading, too, if `hasHeading` is false. */
  children(data: Data): ReactNode;
  hasHeading?: boolean;
  isFirst?: boolean;
  lines?: number;
  isWide?: boolean;
}

/** A part of the page that loads and fails by itself. The first section of a query shows its error. */
export const Section = <Data,>(props: SectionProps<Data>) => {
  const { title, query, children, hasHeading = true, isFirst = true, lines = 4, isWide = false } = props;
  const { data, error, refetch } = query;
  const id = useId();
  if (!isFirst && data === undefined && error !== null) return null;
  return (
    <section aria-labelledby={id} className={isWide ? `${styles.section} ${styles.wide}` : styles.section}>
      {hasHeading || data === undefined ? (
        <h2 id={id}>{title}</h2>
      ) : (
        <span id={id} hidden>
          {title}
        </span>
      )}
      {isFirst && error !== null && <Refusal error={error} onRetry={() => void refetch()} />}
      {data === undefined && error === null && <Skeleton lines={lines} label={`Loading ${title}`} />}
      {data !== undefined && children(data)}
    </section>
  );
};
