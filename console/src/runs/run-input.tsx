import { Skeleton } from "../design/skeleton.tsx";
import { JsonView } from "../parts/json.tsx";
import { Empty, ErrorNotice } from "../parts/notice.tsx";
import { isOver } from "../parts/run.ts";
import { useOutput, type RunDetails } from "./run-record.ts";
import styles from "./run-page.module.css";

const isEmpty = (value: unknown): boolean => value == null || JSON.stringify(value) === "{}";

const Part = ({ name, value }: { name: string; value: unknown }) =>
  isEmpty(value) ? null : (
    <section className={styles.part} aria-label={name}>
      <h2>{name}</h2>
      <div>
        <JsonView value={value} depth={3} />
      </div>
    </section>
  );

const Output = ({ run }: { run: RunDetails }) => {
  const { data, error, isPending, refetch } = useOutput(run);
  return (
    <section className={styles.part} aria-label="Output">
      <h2>Output</h2>
      {!isOver(run) ? (
        <Empty>The run has not ended.</Empty>
      ) : error !== null ? (
        <ErrorNotice error={error} onRetry={() => void refetch()} />
      ) : isPending ? (
        <Skeleton lines={2} label="Loading the output" />
      ) : isEmpty(data?.values) ? (
        <Empty>The run stored no values, or its checkpoints were deleted.</Empty>
      ) : (
        <div>
          <JsonView value={data?.values} depth={3} />
        </div>
      )}
    </section>
  );
};

export const RunInput = ({ run }: { run: RunDetails }) => {
  const { input, command, config, context, webhook: _, ...options } = run.kwargs ?? {};
  return (
    <div className={styles.parts}>
      <div className="stack">
        <Part name="Input" value={input} />
        <Part name="Command" value={command} />
        <Output run={run} />
      </div>
      <div className="stack">
        <Part name="Config" value={config} />
        <Part name="Context" value={context} />
        <Part name="Metadata" value={run.metadata} />
        <Part name="Options" value={options} />
      </div>
    </div>
  );
};
