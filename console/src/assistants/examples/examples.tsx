import type { Assistant, AssistantVersion } from "@langchain/langgraph-sdk";
import { ListChecks, Play, Plus, Square } from "lucide-react";
import { useState } from "react";
import { Confirmation } from "../../design/dialog.tsx";
import { EmptyState } from "../../design/empty-state.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { truncate } from "../../design/truncate.ts";
import { ErrorNotice } from "../../parts/notice.tsx";
import { InheritedNotice } from "../trial/inherited-notice.tsx";
import { VersionChoice } from "../trial/version-choice.tsx";
import { inputLine } from "../trial/written.ts";
import { ExampleDialog } from "./example-dialog.tsx";
import { ExampleTable } from "./example-table.tsx";
import { EXAMPLES_AT_MOST, useDeleteExample, useExamples, useSaveExample, type Example } from "./queries.ts";
import type { ExampleRuns } from "./use-example-runs.ts";

interface ExamplesProps {
  assistant: Assistant;
  /** Newest first. */
  versions: readonly AssistantVersion[];
  runs: ExampleRuns;
}

type Opened = { kind: "new" } | { kind: "edit" | "delete"; example: Example };

export const Examples = ({ assistant, versions, runs }: ExamplesProps) => {
  const graphId = assistant.graph_id;
  const { data, error, isPending, refetch } = useExamples(graphId);
  const remove = useDeleteExample(graphId);
  const expect = useSaveExample(graphId);
  const [opened, setOpened] = useState<Opened>();
  const [chosen, setChosen] = useState<{ main?: number | undefined; other?: number | undefined }>({});
  const close = (): void => setOpened(undefined);
  const examples = data?.examples ?? [];
  const main = chosen.main ?? assistant.version;
  const sides = [main, chosen.other].flatMap((number) =>
    versions.filter(({ version }) => version === number),
  );
  const { results, isRunning, done } = runs;
  const add = (
    <button type="button" onClick={() => setOpened({ kind: "new" })}>
      <Plus aria-hidden size={16} strokeWidth={1.75} />
      New example
    </button>
  );
  return (
    <div className="stack">
      <ErrorNotice error={error} onRetry={() => void refetch()} />
      <ErrorNotice error={remove.error ?? expect.error} />
      {isPending && <Skeleton lines={6} />}
      {data !== undefined && examples.length === 0 && (
        <EmptyState icon={ListChecks} title="No examples yet" action={add}>
          An example is an input that you run on each new version. All assistants of the graph {graphId} share
          their examples.
        </EmptyState>
      )}
      {examples.length > 0 && (
        <>
          <div className="row">
            <VersionChoice
              label="Version"
              versions={versions}
              active={assistant.version}
              chosen={main}
              onChoose={(version) => setChosen({ ...chosen, main: version })}
            />
            {versions.length > 1 && (
              <VersionChoice
                label="Compare with"
                none="No other version"
                versions={versions}
                active={assistant.version}
                chosen={chosen.other}
                onChoose={(version) => setChosen({ ...chosen, other: version })}
              />
            )}
            {isRunning ? (
              <button type="button" className="danger" onClick={runs.stop}>
                <Square aria-hidden size={14} strokeWidth={1.75} />
                Stop
              </button>
            ) : (
              <button type="button" className="primary" onClick={() => void runs.run(examples, sides)}>
                <Play aria-hidden size={14} strokeWidth={1.75} />
                Run all
              </button>
            )}
            {add}
            <span role="status" className="faint">
              {results.total > 0 && `${done} of ${results.total}`}
            </span>
          </div>
          <InheritedNotice assistant={assistant} versions={sides} />
          {data?.hasMore === true && (
            <p className="faint">{`Only ${EXAMPLES_AT_MOST} examples are shown. Delete some to see others.`}</p>
          )}
          <ExampleTable
            examples={examples}
            versions={results.versions}
            trials={results.trials}
            onEdit={(example) => setOpened({ kind: "edit", example })}
            onDelete={(example) => setOpened({ kind: "delete", example })}
            onExpect={(example, answer) => expect.mutate({ ...example, expected: answer })}
          />
        </>
      )}
      {opened?.kind === "new" && <ExampleDialog graphId={graphId} onClose={close} />}
      {opened?.kind === "edit" && (
        <ExampleDialog graphId={graphId} example={opened.example} onClose={close} />
      )}
      {opened?.kind === "delete" && (
        <Confirmation
          question={`Delete the example ${truncate(opened.example.name || inputLine(opened.example.input))}?`}
          action="Delete example"
          onConfirm={() => remove.mutate(opened.example.id)}
          onClose={close}
        />
      )}
    </div>
  );
};
