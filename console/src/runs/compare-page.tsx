import { ArrowLeftRight, GitCompareArrows } from "lucide-react";
import { lazy, Suspense, useState } from "react";
import { Link, useSearchParams } from "wouter";
import { EmptyState } from "../design/empty-state.tsx";
import { PageHead } from "../design/page-head.tsx";
import { Skeleton } from "../design/skeleton.tsx";
import { Empty, ErrorNotice } from "../parts/notice.tsx";
import { shortId } from "../parts/record-link.tsx";
import { isOver } from "../parts/run.ts";
import { Table } from "../parts/table.tsx";
import { attemptMs } from "../parts/timeline/rows.ts";
import { Timeline } from "../parts/timeline/timeline.tsx";
import { sumOf, type Attempt, type Trace } from "../parts/timeline/trace.ts";
import { useCurrency, useTrace } from "../parts/timeline/use-trace.ts";
import { useNow } from "../parts/use-now.ts";
import { comparePath } from "./compare-dialog.tsx";
import { factsOf, type Fact } from "./run-facts.ts";
import { runName } from "./run-name.ts";
import { useOutput, useRun, type RunDetails } from "./run-record.ts";
import styles from "./run-page.module.css";

const Difference = lazy(async () => ({
  default: (await import("../parts/difference/difference.tsx")).Difference,
}));

const useSide = (runId: string) => {
  const { data: run, error, refetch } = useRun(runId);
  const trace = useTrace(run?.thread_id, runId).data;
  const output = useOutput(run).data;
  return { run, trace, output, error, refetch };
};
type Side = ReturnType<typeof useSide>;

const comparedFacts = (run: RunDetails, facts: readonly Fact[]): (readonly [string, string])[] => [
  ["Status", run.status],
  ["Graph", run.graph_id ?? "–"],
  ["Assistant", `…${shortId(run.assistant_id)}`],
  ["Thread", `…${shortId(run.thread_id)}`],
  ...facts.filter(({ isCompared }) => isCompared).map(({ name, text }) => [name, text] as const),
];

const FactTable = ({ sides }: { sides: readonly (readonly [string, string])[][] }) => {
  const [left, right] = sides.map((facts) => new Map(facts));
  const names = [...new Set([...(left?.keys() ?? []), ...(right?.keys() ?? [])])];
  return (
    <Table label="Facts" columns={["Fact", "Left", "Right", "Difference"]}>
      {names.map((name) => {
        const [one, other] = [left?.get(name) ?? "–", right?.get(name) ?? "–"];
        return (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td>{one}</td>
            <td>{other}</td>
            <td className={one === other ? "faint" : styles.different}>
              {one === other ? "same" : "different"}
            </td>
          </tr>
        );
      })}
    </Table>
  );
};

const lastAttempt = (trace: Trace | undefined): Attempt | undefined =>
  trace?.attempts.findLast(({ spans }) => spans.length > 0);

const OneTimeline = ({ name, side, scaleMs, totalMs }: OneTimelineProps) => {
  const [selected, setSelected] = useState<number>();
  const attempt = lastAttempt(side.trace);
  return (
    <section className={styles.side} aria-label={`${name} timeline`}>
      <h3>{name}</h3>
      {attempt === undefined ? (
        <Empty>No timeline is stored.</Empty>
      ) : (
        <Timeline
          label={`Timeline ${name.toLowerCase()}`}
          spans={attempt.spans}
          totalMs={totalMs}
          scaleMs={scaleMs}
          selected={selected}
          onSelect={setSelected}
        />
      )}
    </section>
  );
};
interface OneTimelineProps {
  name: string;
  side: Side;
  scaleMs: number;
  totalMs: number;
}

const Differences = ({ name, left, right }: { name: string; left: unknown; right: unknown }) => (
  <section className="stack" aria-label={`${name} differences`}>
    <h2>{name}</h2>
    <Suspense fallback={<Skeleton lines={2} />}>
      <Difference before={left ?? null} after={right ?? null} />
    </Suspense>
  </section>
);

const Comparison = ({ sides: [left, right] }: { sides: readonly [Side, Side] }) => {
  const hasCost = [left, right].some(({ trace }) => trace !== undefined && sumOf(trace.usage)?.cost != null);
  const currency = useCurrency(hasCost);
  const now = useNow([left, right].some(({ run }) => run !== undefined && !isOver(run)));
  const lengths = [left, right].map(({ trace }) => {
    const attempt = lastAttempt(trace);
    return trace === undefined || attempt === undefined ? 0 : attemptMs(trace, attempt, now);
  });
  const scaleMs = Math.max(...lengths);
  if (left.run === undefined || right.run === undefined) return null;
  const facts = [left, right].map(({ run, trace }) =>
    run === undefined ? [] : [...comparedFacts(run, factsOf(run, trace, { now, currency }))],
  );
  return (
    <>
      <div className={styles.sides}>
        {([left.run, right.run] as const).map((run, index) => (
          <p key={index} className="faint">
            {index === 0 ? "Left: " : "Right: "}
            <Link href={`/runs/${run.run_id}`}>{runName(run)}</Link>
          </p>
        ))}
      </div>
      <FactTable sides={facts} />
      <h2>Timelines</h2>
      <div className={styles.sides}>
        <OneTimeline name="Left" side={left} scaleMs={scaleMs} totalMs={lengths[0] ?? 0} />
        <OneTimeline name="Right" side={right} scaleMs={scaleMs} totalMs={lengths[1] ?? 0} />
      </div>
      <Differences name="Input" left={left.run.kwargs?.input} right={right.run.kwargs?.input} />
      {left.output !== undefined && right.output !== undefined && (
        <Differences name="Output" left={left.output?.values} right={right.output?.values} />
      )}
    </>
  );
};

const TwoRuns = ({ left: leftId, right: rightId }: { left: string; right: string }) => {
  const [left, right] = [useSide(leftId), useSide(rightId)];
  return (
    <>
      <ErrorNotice error={left.error} onRetry={() => void left.refetch()} />
      <ErrorNotice error={right.error} onRetry={() => void right.refetch()} />
      {[left, right].some(({ run, error }) => run === undefined && error === null) && (
        <Skeleton lines={8} label="Loading the runs" />
      )}
      <Comparison sides={[left, right]} />
    </>
  );
};

export default function ComparePage() {
  const [params] = useSearchParams();
  const [left, right] = [params.get("left") ?? "", params.get("right") ?? ""];
  if (left === "" || right === "")
    return (
      <>
        <h1 className="unseen">Compare runs</h1>
        <EmptyState
          icon={GitCompareArrows}
          title="Choose two runs"
          action={<Link href="/runs">Show all runs</Link>}
        >
          Select two runs in the list, then choose Compare.
        </EmptyState>
      </>
    );
  return (
    <div className="stack">
      <PageHead
        title="Compare runs"
        actions={
          <Link href={comparePath(right, left)} className="row">
            <ArrowLeftRight aria-hidden size={16} strokeWidth={1.75} />
            Swap sides
          </Link>
        }
      />
      <TwoRuns key={`${left} ${right}`} left={left} right={right} />
    </div>
  );
}
