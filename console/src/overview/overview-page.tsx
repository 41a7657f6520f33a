import { Play } from "lucide-react";
import { useMemo } from "react";
import { useLocation, useSearchParams } from "wouter";
import { Chip } from "../design/chip.tsx";
import { EmptyState } from "../design/empty-state.tsx";
import { PageHead } from "../design/page-head.tsx";
import { Empty } from "../parts/notice.tsx";
import { Chart } from "./chart.tsx";
import { Figures } from "./figures.tsx";
import { FailingGraphs, LackingGraphs, SlowGraphs } from "./graph-tables.tsx";
import { costText, countText, shortText } from "./numbers.ts";
import { allOf, useQueueFigures, useSummary, useUsage, type Summary, type Usage } from "./queries.ts";
import { useSampledNodes } from "./sampled-nodes.ts";
import { Refusal, Section } from "./section.tsx";
import { byDay, costOf, runsPerHour, tokensOf } from "./series.ts";
import { SlowNodes } from "./slow-nodes.tsx";
import styles from "./overview.module.css";

const RANGES = [
  { hours: 24, name: "24 h" },
  { hours: 72, name: "3 d" },
  { hours: 168, name: "7 d" },
] as const;

const RunsChart = ({ summary }: { summary: Summary }) => {
  const described = useMemo(() => runsPerHour(summary), [summary]);
  return <Chart title="Runs per hour" unit="Hour" {...described} text={countText} shortText={shortText} />;
};

const TokensChart = ({ usage }: { usage: Usage }) => {
  const described = useMemo(() => byDay(usage, tokensOf, countText, "tokens"), [usage]);
  if (described.data.series.length === 0)
    return (
      <>
        <h2>Tokens by day</h2>
        <Empty>No model has reported tokens in the last 30 days.</Empty>
      </>
    );
  return (
    <Chart title="Tokens by day" unit="Day (UTC)" {...described} text={countText} shortText={shortText} />
  );
};

const CostChart = ({ usage, currency }: { usage: Usage; currency: string }) => {
  const text = useMemo(() => (cost: number) => costText(cost, currency), [currency]);
  const described = useMemo(() => byDay(usage, costOf, text, "spent"), [usage, text]);
  if (described.data.series.length === 0)
    return (
      <>
        <h2>Cost by day</h2>
        <Empty>No model with a price was called in the last 30 days.</Empty>
      </>
    );
  return <Chart title="Cost by day" unit="Day (UTC)" {...described} text={text} shortText={shortText} />;
};

const NoPrices = () => (
  <>
    <h2>Cost by day</h2>
    <Empty>
      The models have no prices. Set them in <code>langgraph.json</code> as <code>usage.prices</code>.
    </Empty>
  </>
);

export default function OverviewPage() {
  const [, navigate] = useLocation();
  const [params, setParams] = useSearchParams();
  const asked = Number(params.get("hours"));
  const range = RANGES.find(({ hours }) => hours === asked) ?? RANGES[0];
  const summary = useSummary(range.hours);
  const usage = useUsage();
  const queue = useQueueFigures();
  const nodes = useSampledNodes();
  const isUnused =
    summary.data?.hours.every((counts) => allOf(counts) === 0) === true &&
    usage.data?.rows.length === 0 &&
    queue.data?.num_pending === 0 &&
    nodes.data?.runs === 0;
  return (
    <div className={styles.page}>
      <PageHead
        title="Overview"
        actions={
          <div role="group" aria-label="Range" className="row">
            {RANGES.map(({ hours, name }) => (
              <Chip
                key={hours}
                isOn={hours === range.hours}
                onToggle={() =>
                  setParams(hours === RANGES[0].hours ? {} : { hours: String(hours) }, { replace: true })
                }
              >
                {name}
              </Chip>
            ))}
          </div>
        }
      />
      {isUnused ? (
        <EmptyState
          icon={Play}
          title="No runs yet"
          action={
            <button type="button" className="primary" onClick={() => navigate("/")}>
              Open the playground
            </button>
          }
        >
          This page shows how often runs fail, how long they take and what they cost. Start a run in the
          playground.
        </EmptyState>
      ) : (
        <>
          <Figures rangeName={range.name} summary={summary.data} queue={queue.data} usage={usage.data} />
          {queue.error !== null && <Refusal error={queue.error} onRetry={() => void queue.refetch()} />}
          <div className={styles.grid}>
            <Section title="Runs per hour" query={summary} hasHeading={false} lines={6} isWide>
              {(data) => <RunsChart summary={data} />}
            </Section>
            <Section title="Failing graphs" query={summary} isFirst={false}>
              {(data) => (
                <>
                  <FailingGraphs summary={data} />
                  <LackingGraphs summary={data} />
                </>
              )}
            </Section>
            <Section title="Slowest graphs" query={summary} isFirst={false}>
              {(data) => (
                <>
                  <SlowGraphs summary={data} />
                  <LackingGraphs summary={data} />
                </>
              )}
            </Section>
            <Section title="Tokens by day" query={usage} hasHeading={false} lines={6}>
              {(data) => <TokensChart usage={data} />}
            </Section>
            <Section title="Cost by day" query={usage} hasHeading={false} isFirst={false} lines={6}>
              {(data) =>
                data.currency === null ? <NoPrices /> : <CostChart usage={data} currency={data.currency} />
              }
            </Section>
            <Section title="Slowest nodes" query={nodes} isWide>
              {(data) => <SlowNodes sample={data} />}
            </Section>
          </div>
        </>
      )}
    </div>
  );
}
