import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { eventually } from "../helpers/conditions.ts";
import { freePort } from "../helpers/free-port.ts";
import { temporaryFolder } from "../helpers/temporary-folder.ts";

export const MONITORING = fileURLToPath(new URL("../../docs/monitoring/", import.meta.url));

/** Why the tests can't run; undefined if they can. */
export const reasonForNoPrometheus = (): string | undefined =>
  ["prometheus", "promtool"].every((name) => spawnSync(name, ["--version"]).status === 0)
    ? undefined
    : "prometheus and promtool are missing: apt-get install prometheus";

/** Runs promtool, and returns what it prints. Throws if it finds a fault. */
export const promtool = (...words: string[]): string => {
  const { status, stdout, stderr } = spawnSync("promtool", words, { encoding: "utf8" });
  if (status !== 0) throw new Error(`promtool ${words.join(" ")}:\n${stdout}${stderr}`);
  return stdout;
};

export interface Alert {
  labels: Record<string, string>;
  state: string;
}

export interface Sample {
  metric: Record<string, string>;
  value: [time: number, value: string];
}

const SCRAPE_SECONDS = 1;
/** Longer than a server waits for its database at a scrape. */
const SLOW_SCRAPE_SECONDS = 3;
/** Of all guarded servers. */
export const API_KEY = "a-key-for-prometheus";

/** The alerts fire at once, and rates look back for seconds. `alerts.yml` tests the real times. */
const hurried = (rules: string): string =>
  rules
    .replaceAll(/\bfor: \w+/g, "for: 0s")
    .replaceAll("[5m]", "[10s]")
    .replaceAll("[10m]", "[30s]")
    .replaceAll("[30m]", "[2m]");

export interface Job {
  /** Host and port. */
  target: string;
  isSlow?: boolean;
}

/** Starts Prometheus with the rules of docs/monitoring. */
export const startPrometheus = async (jobs: Readonly<Record<string, Job>>) => {
  const folder = await temporaryFolder();
  const rules = join(folder.path, "rules.yml");
  await writeFile(rules, hurried(await readFile(join(MONITORING, "rules.yml"), "utf8")));
  const config = join(folder.path, "prometheus.yml");
  const key = join(folder.path, "api-key");
  await writeFile(key, API_KEY);
  const scrapes = Object.entries(jobs).map(([job_name, { target, isSlow = false }]) => ({
    job_name,
    authorization: { credentials_file: key },
    scrape_interval: `${isSlow ? SLOW_SCRAPE_SECONDS : SCRAPE_SECONDS}s`,
    static_configs: [{ targets: [target] }],
  }));
  // JSON is YAML.
  await writeFile(
    config,
    JSON.stringify({
      global: { evaluation_interval: `${SCRAPE_SECONDS}s` },
      rule_files: [rules],
      scrape_configs: scrapes,
    }),
  );
  const url = `http://127.0.0.1:${await freePort()}`;
  const child = spawn(
    "prometheus",
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(folder.path, "tsdb")}`,
      `--web.listen-address=${new URL(url).host}`,
    ],
    { cwd: dirname(config), stdio: "ignore" },
  );
  const ended = once(child, "exit");
  const get = async <Body>(path: string): Promise<Body> => {
    const answer = await fetch(`${url}/api/v1/${path}`);
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return ((await answer.json()) as { data: Body }).data;
  };
  const close = async (): Promise<void> => {
    child.kill();
    await ended;
    await folder.remove();
  };
  try {
    await eventually(
      "Prometheus is ready",
      async () => (await fetch(`${url}/-/ready`).catch(() => undefined))?.ok,
    );
  } catch (error) {
    await close();
    throw error;
  }
  return {
    query: async (expression: string): Promise<Sample[]> =>
      (await get<{ result: Sample[] }>(`query?query=${encodeURIComponent(expression)}`)).result,
    alerts: async (): Promise<Alert[]> => (await get<{ alerts: Alert[] }>("alerts")).alerts,
    close,
  };
};
