import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { Checkpoint } from "@langchain/langgraph-sdk";
import { useEffect, useState } from "react";
import { useSchemas } from "../parts/assistants.ts";
import type { CheckpointRef } from "../parts/checkpoints.ts";
import { Dialog } from "../design/dialog.tsx";
import { ErrorNotice, ReadingNotice } from "../parts/notice.tsx";
import { isOver, type Run } from "../parts/run.ts";
import { Status } from "../parts/status.tsx";
import { UNTOUCHED, ValueEditor } from "../parts/value-editor.tsx";
import { useConnection } from "../server/connection.tsx";
import { refetchEvery } from "../server/refetch.ts";

const POLL_MS = 500;

const errorText = ({ error }: Run): string | undefined => {
  const words = [error?.message, error?.error].filter((word) => typeof word === "string");
  return words[0];
};

export const RunProgress = ({ threadId, runId }: { threadId: string; runId: string }) => {
  const { request } = useConnection();
  const queries = useQueryClient();
  const run = useQuery({
    queryKey: ["runs", threadId, runId],
    queryFn: () => request<Run>("GET", `/threads/${encodeURIComponent(threadId)}/runs/${runId}`),
    refetchInterval: (query) =>
      refetchEvery(query.state.data !== undefined && isOver(query.state.data) ? false : POLL_MS)(query),
  });
  const status = run.data?.status;
  const hasEnded = run.data !== undefined && isOver(run.data);
  useEffect(() => {
    if (hasEnded) void queries.invalidateQueries({ queryKey: ["threads", threadId] });
  }, [hasEnded, queries, threadId]);
  const why = run.data === undefined ? undefined : errorText(run.data);
  return (
    <div role="status" className="notice">
      <p className="row">
        Run started here: <Status status={status ?? "pending"} />
        {why !== undefined && <span>{why}</span>}
      </p>
      <ErrorNotice error={run.error} />
    </div>
  );
};

interface Starter {
  threadId: string;
  assistantId: string | undefined;
  onStarted(runId: string): void;
}

const useStart = ({ threadId, assistantId, onStarted }: Starter) => {
  const { client } = useConnection();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async ({
      input,
      checkpoint,
    }: {
      input: Record<string, unknown> | null;
      checkpoint: Omit<Checkpoint, "thread_id">;
    }) =>
      await client.runs.create(threadId, assistantId ?? "", {
        input,
        checkpoint,
        // A concurrent run would add its checkpoints in between.
        multitaskStrategy: "reject",
      }),
    onSuccess: ({ run_id: runId }) => {
      void queries.invalidateQueries({ queryKey: ["threads", threadId] });
      onStarted(runId);
    },
  });
};

const NoAssistant = () => (
  <p className="faint">No assistant has run in this thread yet, so no run can start here.</p>
);

/**
 * A run cannot start inside a subgraph, because LangGraph restarts the subgraphs of a step.
 * @param around checkpoints of the parent graphs by namespace
 */
export const RunFromCall = ({
  around,
  ...starter
}: Starter & { checkpointRef: CheckpointRef; around: Checkpoint["checkpoint_map"] }) => {
  const start = useStart(starter);
  if (starter.assistantId === undefined) return <NoAssistant />;
  if (typeof around?.[""] !== "string")
    return (
      <p className="faint">The server does not say which step called this graph, so no run can start here.</p>
    );
  return (
    <>
      <button
        type="button"
        className="primary"
        disabled={start.isPending}
        title="LangGraph restarts the graphs that a step calls."
        onClick={() =>
          start.mutate({ input: null, checkpoint: { ...starter.checkpointRef, checkpoint_map: around } })
        }
      >
        Run from the step that called this graph
      </button>
      <ErrorNotice error={start.error} />
    </>
  );
};

interface RunFromProps extends Starter {
  checkpointRef: CheckpointRef;
  isDue: boolean;
  onOpen(): void;
}

export const RunFrom = ({ threadId, assistantId, checkpointRef, isDue, onOpen, onStarted }: RunFromProps) => {
  const [isOpen, setIsOpen] = useState(false);
  const start = useStart({
    threadId,
    assistantId,
    onStarted: (runId) => {
      setIsOpen(false);
      onStarted(runId);
    },
  });
  const run = (input: Record<string, unknown> | null): void =>
    start.mutate({ input, checkpoint: { ...checkpointRef, checkpoint_map: null } });
  if (assistantId === undefined) return <NoAssistant />;
  return (
    <>
      <button
        type="button"
        className="primary"
        disabled={!isDue || start.isPending}
        title={isDue ? undefined : "No node is next after this checkpoint."}
        onClick={() => run(null)}
      >
        Run from here
      </button>
      <button
        type="button"
        disabled={start.isPending}
        onClick={() => {
          onOpen();
          setIsOpen(true);
        }}
      >
        Run with new input…
      </button>
      {!isOpen && <ErrorNotice error={start.error} />}
      {isOpen && (
        <NewInput
          assistantId={assistantId}
          isPending={start.isPending}
          error={start.error}
          onRun={run}
          onClose={() => {
            setIsOpen(false);
            start.reset();
          }}
        />
      )}
    </>
  );
};

interface NewInputProps {
  assistantId: string;
  isPending: boolean;
  error: unknown;
  onRun(input: Record<string, unknown>): void;
  onClose(): void;
}

const NewInput = ({ assistantId, isPending, error, onRun, onClose }: NewInputProps) => {
  const [input, setInput] = useState<unknown>({});
  const [validity, setValidity] = useState(UNTOUCHED);
  const schemas = useSchemas(assistantId);
  return (
    <Dialog title="Run from here with new input" onClose={onClose}>
      <ErrorNotice error={schemas.error} />
      <ReadingNotice schemas={schemas.data} />
      {!schemas.isPending && (
        <ValueEditor
          label="Input"
          schema={schemas.data?.input_schema ?? {}}
          value={input}
          onChange={(written, known) => {
            setInput(written);
            setValidity(known);
          }}
        />
      )}
      <ErrorNotice error={error} />
      <button
        type="button"
        className="primary"
        disabled={isPending || !validity.isJson}
        onClick={() => onRun(input as Record<string, unknown>)}
      >
        Run
      </button>
    </Dialog>
  );
};
