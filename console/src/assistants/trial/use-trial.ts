import type { Assistant, AssistantVersion } from "@langchain/langgraph-sdk";
import { useEffect, useRef, useState } from "react";
import { useConnection } from "../../server/connection.tsx";
import { runVersion, targetOf, type Trial } from "./run-version.ts";
import { useInherited } from "./use-inherited.ts";
import type { Written } from "./written.ts";

export interface TrialSide {
  version: AssistantVersion;
  trial: Trial;
}

/** Runs the same input on one or two versions. The state outlives the tab that shows it. */
export const useTrial = (assistant: Assistant) => {
  const { client } = useConnection();
  const inherited = useInherited(assistant);
  const [written, setWritten] = useState<Written>();
  const [chosen, setChosen] = useState<{ left?: number | undefined; right?: number | undefined }>({});
  const [sides, setSides] = useState<readonly TrialSide[]>([]);
  /** The input of the shown answers. */
  const [input, setInput] = useState<unknown>();
  const abort = useRef<AbortController>(undefined);
  useEffect(() => () => abort.current?.abort(), []);

  const run = (versions: readonly AssistantVersion[], given: unknown): void => {
    abort.current?.abort();
    const controller = new AbortController();
    abort.current = controller;
    const { signal } = controller;
    setInput(given);
    setSides(versions.map((version) => ({ version, trial: { status: "running", answer: "" } })));
    const update = (index: number, trial: Trial): void => {
      // A later run shows its own answers.
      if (abort.current === controller)
        setSides((now) => now.map((side, at) => (at === index ? { ...side, trial } : side)));
    };
    versions.forEach((version, index) => {
      const onText = (answer: string): void => update(index, { status: "running", answer });
      void runVersion(client, targetOf(assistant, version, inherited?.defaults ?? {}), given, {
        signal,
        onText,
      }).then((trial) => update(index, trial));
    });
  };

  return {
    ...{ written, setWritten, chosen, setChosen, sides, input, run },
    isRunning: sides.some(({ trial }) => trial.status === "running"),
    stop: (): void => abort.current?.abort(),
  };
};

export type TrialState = ReturnType<typeof useTrial>;
