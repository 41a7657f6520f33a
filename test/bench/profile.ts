import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { formatNumber, tableOf } from "./report.ts";

/** The parts of a file that `--cpu-prof` writes. Times in microseconds. */
export interface CpuProfile {
  nodes: { id: number; callFrame: { functionName: string; url: string }; children?: number[] }[];
  samples: number[];
  timeDeltas: number[];
}

const LANGGRAPH = "@langchain/langgraph";
const PACKAGE = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//;
const OWN = /\/(?:src|dist)\/([^/]+)\/[^/]/;
const GROUPS: Readonly<Record<string, string>> = {
  "pg-protocol": "pg",
  "pg-pool": "pg",
  "pg-types": "pg",
  "@langchain/langgraph-checkpoint": LANGGRAPH,
};

/** A package, a district of src/, or a module of Node; undefined for native code. */
const componentOf = (url: string): string | undefined => {
  if (url === "") return undefined;
  const name = PACKAGE.exec(url)?.[1];
  if (name !== undefined) return GROUPS[name] ?? name;
  const district = OWN.exec(url)?.[1];
  if (district !== undefined) return `src/${district}`;
  return url.startsWith("node:") ? url.replace(/^(node:(?:internal\/)?[^/]+).*/, "$1") : "other";
};

const NOT_BUSY: ReadonlySet<string> = new Set(["(idle)", "(root)"]);
const OF_V8: ReadonlySet<string> = new Set(["(garbage collector)", "(program)"]);

/**
 * Milliseconds by component, from LangGraph's first sample on, so without the start of the process. Native functions
 * count for their caller.
 */
export const timesOf = ({ nodes, samples, timeDeltas }: CpuProfile): Map<string, number> => {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])));
  const known = new Map<number, string>();
  const componentOfNode = (id: number): string => {
    const found = known.get(id);
    if (found !== undefined) return found;
    const { functionName = "", url = "" } = byId.get(id)?.callFrame ?? {};
    const parent = parents.get(id);
    const component =
      NOT_BUSY.has(functionName) || OF_V8.has(functionName)
        ? functionName
        : (componentOf(url) ?? (parent === undefined ? "(program)" : componentOfNode(parent)));
    known.set(id, component);
    return component;
  };
  const times = new Map<string, number>();
  let hasBegun = false;
  for (const [index, id] of samples.entries()) {
    const component = componentOfNode(id);
    hasBegun ||= component === LANGGRAPH;
    if (!hasBegun || NOT_BUSY.has(component)) continue;
    times.set(component, (times.get(component) ?? 0) + (timeDeltas[index] ?? 0) / 1_000);
  }
  return times;
};

/** Smaller ones are shown together. */
const SHOWN_FROM = 0.01;

/**
 * A table of two profiles, in percent of the time of LangGraph's own code. Both servers execute that code equally
 * often, so other work of the machine changes these figures less than milliseconds.
 */
export const compareProfiles = (
  names: readonly [string, string],
  [there, here]: readonly [Map<string, number>, Map<string, number>],
): string => {
  const share = (times: Map<string, number>, component: string): number =>
    (100 * (times.get(component) ?? 0)) / (times.get(LANGGRAPH) ?? NaN);
  const sum = (times: Map<string, number>, some: Iterable<string>): number =>
    [...some].reduce((all, component) => all + share(times, component), 0);
  const total = (times: Map<string, number>): number => sum(times, times.keys());
  const components = [...new Set([...there.keys(), ...here.keys()])];
  const shown = components
    .filter((component) =>
      [there, here].some((times) => share(times, component) >= SHOWN_FROM * total(times)),
    )
    .sort((one, other) => share(here, other) - share(here, one));
  const rest = components.filter((component) => !shown.includes(component));
  const row = (label: string, some: readonly string[]): string[] => {
    const [before, after] = [sum(there, some), sum(here, some)];
    return [label, formatNumber(before), formatNumber(after), formatNumber(after - before)];
  };
  return tableOf([
    ["% of LangGraph's own time", ...names, "difference"],
    ...shown.map((component) => row(component, [component])),
    row("smaller ones", rest),
    row("all", components),
  ]);
};

/** Of the largest profile in the folder: threads write files, too. Call this when the process has ended. */
export const readTimes = async (folder: string): Promise<Map<string, number>> => {
  const texts = await Promise.all(
    (await readdir(folder))
      .filter((name) => name.endsWith(".cpuprofile"))
      .map((name) => readFile(join(folder, name), "utf8")),
  );
  const [largest] = texts.sort((one, other) => other.length - one.length);
  if (largest === undefined) throw new Error(`${folder} has no CPU profile.`);
  return timesOf(JSON.parse(largest) as CpuProfile);
};
