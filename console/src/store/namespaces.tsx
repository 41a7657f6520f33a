import { useState } from "react";
import { Link } from "wouter";
import { Empty, ErrorNotice } from "../parts/notice.tsx";
import { Skeleton } from "../design/skeleton.tsx";
import { truncate } from "../design/truncate.ts";
import { pathOf } from "./location.ts";
import { useNamespaces } from "./queries.ts";
import styles from "./store.module.css";

/** Set `key` to the namespace. */
export const Namespaces = ({ current }: { current: readonly string[] }) => {
  const [page, setPage] = useState(0);
  const { data, error, refetch, isPending } = useNamespaces(current, page);
  return (
    <nav className={`stack ${styles.namespaces}`} aria-labelledby="namespaces">
      <h2 id="namespaces">Namespaces</h2>
      <ol className={styles.path}>
        <li>
          <Link href={pathOf([])} aria-current={current.length === 0 ? "page" : undefined}>
            All
          </Link>
        </li>
        {current.map((label, index) => (
          <li key={index}>
            <Link
              href={pathOf(current.slice(0, index + 1))}
              aria-current={index === current.length - 1 ? "page" : undefined}
            >
              {truncate(label)}
            </Link>
          </li>
        ))}
      </ol>
      <ErrorNotice error={error} onRetry={() => void refetch()} />
      {isPending && error === null && <Skeleton lines={5} />}
      {data !== undefined && data.namespaces.length === 0 && (
        <Empty>{current.length === 0 ? "The store is empty." : "No namespaces below."}</Empty>
      )}
      <ul className={styles.below}>
        {data?.namespaces.map((namespace) => (
          <li key={namespace.at(-1)}>
            <Link href={pathOf(namespace)}>{truncate(namespace.at(-1) ?? "")}</Link>
          </li>
        ))}
      </ul>
      {(page > 0 || data?.hasMore) && (
        <div className="row">
          <button type="button" disabled={page === 0} onClick={() => setPage(page - 1)}>
            Previous namespaces
          </button>
          <button type="button" disabled={!data?.hasMore} onClick={() => setPage(page + 1)}>
            Next namespaces
          </button>
        </div>
      )}
    </nav>
  );
};
