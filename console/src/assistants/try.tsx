import type { Assistant, AssistantVersion } from "@langchain/langgraph-sdk";
import { Play, Square } from "lucide-react";
import { useLayoutEffect, useMemo, useRef, useState } from "react";
import { Skeleton } from "../design/skeleton.tsx";
import { useSchemas } from "../parts/assistants.ts";
import { useCommands, type Command } from "../parts/commands.tsx";
import { ErrorNotice, ReadingNotice } from "../parts/notice.tsx";
import { ExampleDialog } from "./examples/example-dialog.tsx";
import { Answers } from "./trial/answers.tsx";
import { InputForm } from "./trial/input-form.tsx";
import { InheritedNotice } from "./trial/inherited-notice.tsx";
import type { TrialState } from "./trial/use-trial.ts";
import { VersionChoice } from "./trial/version-choice.tsx";
import { emptyFor, inputOf } from "./trial/written.ts";

interface TryProps {
  assistant: Assistant;
  /** Newest first. */
  versions: readonly AssistantVersion[];
  trial: TrialState;
}

const useRunKey = (label: string, run: () => void): void => {
  const latest = useRef(run);
  useLayoutEffect(() => {
    latest.current = run;
  });
  const commands = useMemo<Command[]>(
    () => [
      {
        ...{ label, group: "Assistant", keys: "$mod+Enter", worksInText: true, isOnce: true },
        run: () => latest.current(),
      },
    ],
    [label],
  );
  useCommands(commands);
};

export const Try = ({ assistant, versions, trial }: TryProps) => {
  const schemas = useSchemas(assistant.graph_id);
  const [isSaving, setIsSaving] = useState(false);
  const schema = schemas.data?.input_schema;
  const written = trial.written ?? emptyFor(schema);
  const given = inputOf(written);
  const isOne = versions.length < 2;
  const find = (number: number | undefined) => versions.find(({ version }) => version === number);
  const right = find(trial.chosen.right) ?? find(assistant.version);
  const left = find(trial.chosen.left) ?? versions.find(({ version }) => version !== assistant.version);
  const sides = [left, right].filter((side) => side !== undefined);
  const label = isOne ? "Run" : "Run both";
  const start = (): void => {
    if (given !== undefined && !trial.isRunning) trial.run(sides, given.input);
  };
  useRunKey(label, start);
  const choice = (side: "left" | "right", name: string, version: number | undefined) => (
    <VersionChoice
      label={name}
      versions={versions}
      active={assistant.version}
      chosen={version}
      onChoose={(number) => trial.setChosen({ ...trial.chosen, [side]: number })}
    />
  );
  return (
    <div className="stack">
      {isOne ? (
        <p className="faint">
          This assistant has one version. Edit it to see the answers of two versions beside each other.
        </p>
      ) : (
        <div className="row">
          {choice("left", "Left", left?.version)}
          {choice("right", "Right", right?.version)}
        </div>
      )}
      <InheritedNotice assistant={assistant} versions={sides} />
      <ErrorNotice error={schemas.error} onRetry={() => void schemas.refetch()} />
      <ReadingNotice schemas={schemas.data} />
      {schemas.isPending ? (
        <Skeleton lines={3} />
      ) : (
        <InputForm schema={schema} written={written} onChange={trial.setWritten} />
      )}
      <div className="row">
        {trial.isRunning ? (
          <button type="button" className="danger" onClick={trial.stop}>
            <Square aria-hidden size={14} strokeWidth={1.75} />
            Stop
          </button>
        ) : (
          <button type="button" className="primary" disabled={given === undefined} onClick={start}>
            <Play aria-hidden size={14} strokeWidth={1.75} />
            {label}
          </button>
        )}
        <button type="button" disabled={given === undefined} onClick={() => setIsSaving(true)}>
          Save as example
        </button>
      </div>
      <Answers sides={trial.sides} />
      {isSaving && given !== undefined && (
        <ExampleDialog
          graphId={assistant.graph_id}
          input={given.input}
          answers={trial.sides
            .filter(
              (side) =>
                side.trial.status === "success" &&
                JSON.stringify(trial.input) === JSON.stringify(given.input),
            )
            .map(({ version, trial: { answer } }) => ({ version: version.version, answer }))}
          onClose={() => setIsSaving(false)}
        />
      )}
    </div>
  );
};
