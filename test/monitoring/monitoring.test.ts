import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { eventually } from "../helpers/conditions.ts";
import { temporaryFolder } from "../helpers/temporary-folder.ts";
import { MONITORING, promtool, reasonForNoPrometheus, startPrometheus, type Sample } from "./prometheus.ts";
import { startTroubles } from "./troubles.ts";

const reason = reasonForNoPrometheus();
if (reason !== undefined) process.stderr.write(`skipped: ${reason}\n`);

interface Panel {
  title: string;
  targets?: { expr: string }[];
}
const dashboard = JSON.parse(readFileSync(join(MONITORING, "dashboard.json"), "utf8")) as {
  panels: Panel[];
};
const queries = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }) => ({ title, expr })),
);
const asked = (expression: string): string =>
  expression
    .replaceAll("$job", "threadloom.*")
    .replaceAll("$__rate_interval", "10s")
    .replaceAll("[5m]", "[10s]");

const rules = parse(readFileSync(join(MONITORING, "rules.yml"), "utf8")) as {
  groups: { rules: { alert?: string; record?: string }[] }[];
};
const namesOf = (kind: "alert" | "record"): string[] =>
  rules.groups.flatMap((group) => group.rules.flatMap((rule) => rule[kind] ?? []));

const numberOf = ({ value: [, text] }: Sample): number => Number(text);
/** -Infinity without a number. */
const largestOf = (samples: readonly Sample[] = []): number =>
  Math.max(...samples.map(numberOf).filter(Number.isFinite));
const shown = (samples: readonly Sample[] = []): string => {
  const largest = samples.find((sample) => numberOf(sample) === largestOf(samples));
  return `${JSON.stringify(largest?.metric)} ${largest?.value[1]} (of ${samples.length})`;
};

describe.skipIf(reason !== undefined)("Prometheus", () => {
  test("accepts the configuration and the rules", async () => {
    const folder = await temporaryFolder();
    for (const name of ["prometheus.yml", "rules.yml"])
      await writeFile(join(folder.path, name), readFileSync(join(MONITORING, name)));
    await writeFile(join(folder.path, "api-key"), "key");
    expect(promtool("check", "config", join(folder.path, "prometheus.yml"))).toContain("SUCCESS");
    await folder.remove();
  });

  test("fires each alert after its time, and not before", () => {
    promtool("test", "rules", fileURLToPath(new URL("alerts.yml", import.meta.url)));
  });

  test("scrapes servers in trouble: each query of the dashboard has an answer, and each alert fires", async () => {
    const troubles = await startTroubles();
    const prometheus = await startPrometheus(troubles.jobs).catch(async (error: unknown) => {
      await troubles.close();
      throw error;
    });
    try {
      const starts = new Map<string, string>();
      /** The newest answer with a number, and rather one above zero. */
      const answers = new Map<string, Sample[]>();
      const fired = new Set<string>();
      const left = { queries: [] as string[], alerts: [] as string[] };
      const look = async (): Promise<boolean> => {
        for (const { labels, state } of await prometheus.alerts())
          if (state === "firing") fired.add(labels["alertname"] ?? "");
        const wanted = [...queries.map(({ expr }) => expr), ...namesOf("record")];
        for (const expression of wanted.filter((each) => !(largestOf(answers.get(each)) > 0))) {
          const answer = await prometheus.query(asked(expression));
          if (largestOf(answer) >= 0) answers.set(expression, answer);
        }
        left.queries = wanted.filter((each) => !answers.has(each));
        left.alerts = namesOf("alert").filter((each) => !fired.has(each));
        return left.queries.length === 0 && left.alerts.length === 0;
      };
      const provoked = troubles.provoke((job) =>
        eventually(`the start of ${job} is scraped`, async () => {
          const [sample] = await prometheus.query(`threadloom_start_time_seconds{job="${job}"}`);
          const value = sample?.value[1];
          if (value === undefined || value === starts.get(job)) return false;
          starts.set(job, value);
          return true;
        }),
      );
      // Awaited below, after the look.
      provoked.catch(() => undefined);
      await eventually("each query has an answer, and each alert fired", look).catch(() => undefined);
      await provoked;
      expect(left).toEqual({ queries: [], alerts: [] });
      expect(queries.length).toBeGreaterThan(60);
      if (process.env["PRINT_ANSWERS"] !== undefined)
        for (const { title, expr } of queries)
          process.stdout.write(`${title} | ${expr} | ${shown(answers.get(expr))}\n`);
    } finally {
      await prometheus.close();
      await troubles.close();
    }
  });
});
