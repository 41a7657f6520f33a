import type { Assistant, AssistantVersion } from "@langchain/langgraph-sdk";
import { useEffect, useRef, useState } from "react";
import { useConnection } from "../../server/connection.tsx";
import { runVersion, targetOf, type Trial } from "../trial/run-version.ts";
import { useInherited } from "../trial/use-inherited.ts";
import type { Example } from "./queries.ts";

const AT_ONCE = 3;

interface Results {
  /** One or two. */
  versions: readonly number[];
  /** The trials of each example, in the order of `versions`. */
  trials: ReadonlyMap<string, readonly (Trial | undefined)[]>;
  total: number;
}

const NONE: Results = { versions: [], trials: new Map(), total: 0 };

/** Runs examples on one or two versions, three at once. The results outlive the tab that shows them. */
export const useExampleRuns = (assistant: Assistant) => {
  const { client } = useConnection();
  const inherited = useInherited(assistant);
  const [results, setResults] = useState(NONE);
  const [isRunning, setIsRunning] = useState(false);
  const abort = useRef<AbortController>(undefined);
  useEffect(() => () => abort.current?.abort(), []);

  const run = async (examples: readonly Example[], versions: readonly AssistantVersion[]): Promise<void> => {
    abort.current?.abort();
    const controller = new AbortController();
    abort.current = controller;
    const { signal } = controller;
    const jobs = examples.flatMap((example) =>
      versions.map((version, index) => ({
        example,
        target: targetOf(assistant, version, inherited?.defaults ?? {}),
        index,
      })),
    );
    setResults({ ...NONE, versions: versions.map(({ version }) => version), total: jobs.length });
    setIsRunning(true);
    const show = (id: string, index: number, trial: Trial): void =>
      setResults((now) => {
        const trials = [...(now.trials.get(id) ?? [])];
        trials[index] = trial;
        return { ...now, trials: new Map(now.trials).set(id, trials) };
      });
    const waiting = jobs.values();
    const work = async (): Promise<void> => {
      for (const { example, target, index } of waiting) {
        if (signal.aborted) return;
        show(example.id, index, { status: "running", answer: "" });
        const trial = await runVersion(client, target, example.input, { signal });
        if (abort.current === controller) show(example.id, index, trial);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    if (abort.current === controller) setIsRunning(false);
  };

  const done = [...results.trials.values()]
    .flat()
    .filter(
      (trial) => trial !== undefined && trial.status !== "running" && trial.status !== "stopped",
    ).length;
  return { ...{ results, isRunning, done, run }, stop: (): void => abort.current?.abort() };
};

export type ExampleRuns = ReturnType<typeof useExampleRuns>;
