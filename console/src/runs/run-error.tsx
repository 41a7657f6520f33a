import { useQuery } from "@tanstack/react-query";
import { nodeAround, originOfError } from "../parts/timeline/rows.ts";
import { Failure } from "../parts/timeline/failure.tsx";
import type { Trace } from "../parts/timeline/trace.ts";
import { useConnection } from "../server/connection.tsx";
import { readFailedNodes, type RunDetails } from "./run-record.ts";
import styles from "./run-page.module.css";

const asText = (value: unknown): string =>
  typeof value === "string" ? value : (JSON.stringify(value, null, 2) ?? "");

/** What failed, in which node, and where in the code. */
export const RunError = ({ run, trace }: { run: RunDetails; trace: Trace | undefined }) => {
  const connection = useConnection();
  const { data: failed = [] } = useQuery({
    queryKey: ["runs", "failed nodes", run.run_id],
    queryFn: () => readFailedNodes(connection, run),
    enabled: run.status === "error",
    retry: false,
  });
  const spans = trace?.attempts.at(-1)?.spans ?? [];
  const origin = originOfError(spans);
  const inTrace = origin && nodeAround(origin, spans);
  const { error: kind, message, ...others } = run.error ?? {};
  const nodes = [
    ...new Set([...(inTrace === undefined ? [] : [inTrace]), ...failed.map(({ node }) => node)]),
  ];
  return (
    <div className={styles.pane}>
      <div className="stack">
        <h2 className="unseen">Error</h2>
        <Failure
          error={{
            type: asText(kind ?? "Error"),
            message: asText(message),
            ...(origin?.error?.at !== undefined && { at: origin.error.at }),
          }}
        >
          {nodes.map((node) => (
            <p key={node}>
              Error in node <code>{node}</code>
            </p>
          ))}
        </Failure>
        {failed
          .filter(({ error }) => error !== "" && error !== asText(message))
          .map(({ node, error }) => (
            <section key={node} className={styles.part} aria-label={`Error of ${node}`}>
              <h2>What {node} threw</h2>
              <pre className={styles.message} tabIndex={0}>
                {error}
              </pre>
            </section>
          ))}
        {Object.entries(others).map(([name, value]) => (
          <section key={name} className={styles.part} aria-label={name}>
            <h2>{name}</h2>
            <pre className={styles.message} tabIndex={0}>
              {asText(value)}
            </pre>
          </section>
        ))}
      </div>
    </div>
  );
};
