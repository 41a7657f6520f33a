import { BarController, BarElement, CategoryScale, Chart as Drawing, LinearScale, Tooltip } from "chart.js";
import { useEffect, useRef, useState } from "react";
import { truncate } from "../design/truncate.ts";
import { Table } from "../parts/table.tsx";
import { colourOf, fillOf, useTextColour, type Look } from "./colours.ts";
import styles from "./chart.module.css";

Drawing.register(BarController, BarElement, CategoryScale, LinearScale, Tooltip);

export interface Series extends Look {
  name: string;
  values: readonly number[];
}

export interface ChartData {
  /** Of the bars, e.g. hours. */
  labels: readonly string[];
  series: readonly Series[];
}

interface ChartProps {
  title: string;
  /** The heading of the labels in the table. */
  unit: string;
  /** One sentence for screen readers that sums up the chart. */
  summary: string;
  /** The same object until it changes. */
  data: ChartData;
  text(value: number): string;
  shortText(value: number): string;
}

const NAME_CHARACTERS = 40;
const FONT_PX = 12;
const LABELS_AT_MOST = 12;

const Bars = ({ data, summary, text, shortText }: Omit<ChartProps, "title" | "unit">) => {
  const canvas = useRef<HTMLCanvasElement>(null);
  const colour = useTextColour();
  useEffect(() => {
    const place = canvas.current?.parentElement;
    if (canvas.current === null || place == null) return;
    const [faint, line] = [colourOf(place, "faint"), colourOf(place, "line")];
    const font = { family: getComputedStyle(document.body).fontFamily, size: FONT_PX };
    const drawing = new Drawing(canvas.current, {
      type: "bar",
      data: {
        labels: [...data.labels],
        datasets: data.series.map(({ name, values, ...look }) => ({
          label: truncate(name, NAME_CHARACTERS),
          data: [...values],
          backgroundColor: fillOf(place, look),
          borderRadius: 2,
          maxBarThickness: 32,
          categoryPercentage: 0.9,
          barPercentage: 0.9,
        })),
      },
      options: {
        animation: false,
        maintainAspectRatio: false,
        interaction: { mode: "index", intersect: false },
        scales: {
          x: {
            stacked: true,
            grid: { display: false },
            border: { color: line },
            ticks: { color: faint, font, maxRotation: 0, maxTicksLimit: LABELS_AT_MOST },
          },
          y: {
            stacked: true,
            beginAtZero: true,
            grid: { color: line },
            border: { display: false },
            ticks: {
              color: faint,
              font,
              precision: 0,
              maxTicksLimit: 5,
              callback: (value) => shortText(Number(value)),
            },
          },
        },
        plugins: {
          tooltip: {
            backgroundColor: colourOf(place, "text"),
            titleColor: colourOf(place, "ground"),
            bodyColor: colourOf(place, "ground"),
            titleFont: font,
            bodyFont: font,
            filter: ({ parsed }) => parsed.y !== 0,
            callbacks: { label: ({ dataset, parsed }) => ` ${dataset.label ?? ""}: ${text(parsed.y ?? 0)}` },
          },
        },
      },
    });
    return () => drawing.destroy();
  }, [data, colour, text, shortText]);
  return <canvas ref={canvas} role="img" aria-label={summary} />;
};

/** Stacked bars, or the same numbers as a table. */
export const Chart = ({ title, unit, ...chart }: ChartProps) => {
  const { labels, series } = chart.data;
  const [isTable, setIsTable] = useState(false);
  const action = isTable ? "Show as chart" : "Show as table";
  return (
    <>
      <div className={styles.head}>
        <h2>{title}</h2>
        <button
          type="button"
          className="plain small"
          aria-label={`${action}: ${title}`}
          onClick={() => setIsTable(!isTable)}
        >
          {action}
        </button>
      </div>
      {isTable ? (
        <div className={styles.table}>
          <Table
            label={`${title}, as a table`}
            columns={[unit, ...series.map(({ name }) => truncate(name, NAME_CHARACTERS))]}
            numbers={series.map((_, index) => index + 1)}
          >
            {labels.map((label, index) => (
              <tr key={index}>
                <td>{label}</td>
                {series.map(({ name, values }) => (
                  <td key={name} className={styles.number}>
                    {chart.text(values[index] ?? 0)}
                  </td>
                ))}
              </tr>
            ))}
          </Table>
        </div>
      ) : (
        <>
          <div className={styles.canvas}>
            <Bars {...chart} />
          </div>
          <ul className={styles.legend} aria-label={`Legend: ${title}`}>
            {series.map(({ name, token, pattern }) => (
              <li key={name} title={name}>
                <span aria-hidden className={styles[pattern]} data-colour={token} />
                {truncate(name, NAME_CHARACTERS)}
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
};
