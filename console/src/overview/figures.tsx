import type { ReactNode } from "react";
import { Link } from "wouter";
import { durationText } from "../parts/time.tsx";
import { costText, countText, shareText, shortText } from "./numbers.ts";
import { allOf, failedOf, type QueueFigures, type Summary, type Usage } from "./queries.ts";
import { costOf, tokensOf } from "./series.ts";
import styles from "./overview.module.css";

interface FiguresProps {
  rangeName: string;
  summary: Summary | undefined;
  queue: QueueFigures | undefined;
  usage: Usage | undefined;
}

/** `from` is the start of the shown hours. */
const runsPath = (filter: string, from: string): string => `/runs?${filter}from=${encodeURIComponent(from)}`;

const runFigures = (summary: Summary | undefined): { runs: ReactNode; failed: ReactNode } => {
  if (summary === undefined) return { runs: undefined, failed: undefined };
  const runs = summary.hours.reduce((sum, counts) => sum + allOf(counts), 0);
  const failed = summary.hours.reduce((sum, counts) => sum + failedOf(counts), 0);
  return {
    runs: <Link href={runsPath("", summary.from)}>{countText(runs)}</Link>,
    failed:
      failed === 0 ? (
        "0 %"
      ) : (
        <Link href={runsPath("status=error&", summary.from)} className={styles.bad}>
          {shareText(failed, runs)}
        </Link>
      ),
  };
};

export const Figures = ({ rangeName, summary, queue, usage }: FiguresProps) => {
  const { runs, failed } = runFigures(summary);
  const today = usage?.rows.filter(({ day }) => day === usage.to);
  const sum = (valueOf: (row: Usage["rows"][number]) => number): number =>
    today?.reduce((total, row) => total + valueOf(row), 0) ?? 0;
  const oldest = queue?.oldest_seconds;
  const figures: (readonly [name: string, value: ReactNode])[] = [
    [`Runs in ${rangeName}`, runs],
    ["Failed", runs === undefined ? undefined : failed],
    ["Running now", queue && <Link href="/runs?status=running">{countText(queue.num_running)}</Link>],
    [
      "Pending now",
      queue && (
        <Link href="/queue">
          {countText(queue.num_pending)}
          {queue.is_complete ? "" : "+"}
        </Link>
      ),
    ],
    ["Oldest wait", queue && (oldest == null ? "–" : durationText(oldest * 1_000))],
    ["Tokens today", usage && <span title={countText(sum(tokensOf))}>{shortText(sum(tokensOf))}</span>],
    ["Cost today", usage && (usage.currency === null ? "–" : costText(sum(costOf), usage.currency))],
  ];
  return (
    <dl className={styles.figures}>
      {figures.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value ?? <span className={styles.absent}>–</span>}</dd>
        </div>
      ))}
    </dl>
  );
};
