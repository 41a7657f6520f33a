import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import type { CheckpointPlace } from "../parts/checkpoints.ts";
import { Dialog } from "../parts/dialog.tsx";
import { FaultNotice } from "../parts/notice.tsx";
import { isOver, type Run } from "../parts/run.ts";
import { Status } from "../parts/status.tsx";
import { UNTOUCHED, ValueEditor } from "../parts/value-editor.tsx";
import { useConnection } from "../server/connection.tsx";
import { askedEvery } from "../server/queries.ts";

const LOOKED_AT_EVERY_MS = 500;

const errorText = ({ error }: Run): string | undefined => {
  const words = [error?.message, error?.error].filter((word) => typeof word === "string");
  return words[0];
};

/** How a run goes that was started here, until it is over. */
export const RunProgress = ({ threadId, runId }: { threadId: string; runId: string }) => {
  const { request } = useConnection();
  const queries = useQueryClient();
  const run = useQuery({
    queryKey: ["runs", threadId, runId],
    queryFn: () => request<Run>("GET", `/threads/${encodeURIComponent(threadId)}/runs/${runId}`),
    refetchInterval: (query) =>
      askedEvery(query.state.data !== undefined && isOver(query.state.data) ? false : LOOKED_AT_EVERY_MS)(
        query,
      ),
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
        The run that was started here: <Status status={status ?? "pending"} />
        {why !== undefined && <span>{why}</span>}
      </p>
      <FaultNotice error={run.error} />
    </div>
  );
};

interface RunFromProps {
  threadId: string;
  assistantId: string | undefined;
  place: CheckpointPlace;
  /** Whether nodes are due: only then there is something to go on with. */
  isDue: boolean;
  /** Somebody is about to write an input. */
  onAsk(): void;
  onStarted(runId: string): void;
}

/** Starts a run at a checkpoint: goes on from it, or gives it new input. */
export const RunFrom = ({ threadId, assistantId, place, isDue, onAsk, onStarted }: RunFromProps) => {
  const { client } = useConnection();
  const queries = useQueryClient();
  const [isAsking, setIsAsking] = useState(false);
  const start = useMutation({
    mutationFn: async (input: Record<string, unknown> | null) =>
      await client.runs.create(threadId, assistantId ?? "", {
        input,
        checkpoint: { ...place, checkpoint_map: null },
        // What goes on meanwhile would come in between.
        multitaskStrategy: "reject",
      }),
    onSuccess: ({ run_id: runId }) => {
      setIsAsking(false);
      void queries.invalidateQueries({ queryKey: ["threads", threadId] });
      onStarted(runId);
    },
  });
  if (assistantId === undefined)
    return <p className="faint">No assistant has run in this thread yet: none can go on from here.</p>;
  return (
    <>
      <button
        type="button"
        className="primary"
        disabled={!isDue || start.isPending}
        title={isDue ? undefined : "Nothing is due after this checkpoint."}
        onClick={() => start.mutate(null)}
      >
        Run from here
      </button>
      <button
        type="button"
        disabled={start.isPending}
        onClick={() => {
          onAsk();
          setIsAsking(true);
        }}
      >
        Run with new input…
      </button>
      {!isAsking && <FaultNotice error={start.error} />}
      {isAsking && (
        <NewInput
          assistantId={assistantId}
          isPending={start.isPending}
          error={start.error}
          onRun={(input) => start.mutate(input)}
          onClose={() => {
            setIsAsking(false);
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
  const { client } = useConnection();
  const [input, setInput] = useState<unknown>({});
  const [validity, setValidity] = useState(UNTOUCHED);
  const schemas = useQuery({
    queryKey: ["assistants", assistantId, "schemas"],
    queryFn: () => client.assistants.getSchemas(assistantId),
    staleTime: 60_000,
  });
  return (
    <Dialog title="Run from here with new input" onClose={onClose}>
      <FaultNotice error={schemas.error} />
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
      <FaultNotice error={error} />
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
