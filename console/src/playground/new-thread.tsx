import type { Assistant } from "@langchain/langgraph-sdk";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { v7 } from "uuid";
import { useLocation } from "wouter";
import { useSchemas } from "../parts/assistants.ts";
import { Skeleton } from "../design/skeleton.tsx";
import { truncate } from "../design/truncate.ts";
import { ErrorNotice, ReadingNotice } from "../parts/notice.tsx";
import { useConnection } from "../server/connection.tsx";
import { Composer } from "./composer/composer.tsx";
import { keepFirstInput } from "./composer/first-input.ts";
import { modesOf, type InputSchema } from "./composer/input-schema.ts";
import type { Input } from "./composer/input.ts";
import { startRun, waitForHead } from "./live-thread/runs.ts";
import { Starters, startersOf } from "./composer/starters.tsx";
import { useRunOptions } from "./composer/use-run-options.ts";
import styles from "./new-thread.module.css";

/** A run that waits longer for a worker is shown as waiting. */
const HEAD_WITHIN_MS = 1_500;
const pause = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** One request creates the thread and starts its first run, so leaving the page loses no message. */
export const NewThread = ({
  assistant,
  assistants,
}: {
  assistant: Assistant | undefined;
  assistants: readonly Assistant[];
}) => {
  const connection = useConnection();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const { options } = useRunOptions(assistant?.assistant_id);
  const schemas = useSchemas(assistant?.assistant_id);
  const schema = schemas.data?.input_schema as InputSchema | null | undefined;
  const [filled, setFilled] = useState<{ text: string; count: number }>();
  const isShown = useRef(true);
  useEffect(() => {
    isShown.current = true;
    return () => void (isShown.current = false);
  }, []);
  const begin = useMutation({
    mutationFn: async (input: Input) => {
      const threadId = v7();
      const assistantId = assistant?.assistant_id ?? "";
      const runId = await startRun(connection, { assistantId, threadId, input, options });
      keepFirstInput(queries, threadId, input);
      // A failure to read says nothing about the run.
      await Promise.race([
        waitForHead(connection, threadId, runId).catch(() => undefined),
        pause(HEAD_WITHIN_MS),
      ]);
      return threadId;
    },
    onSuccess: (threadId) => {
      void queries.invalidateQueries({ queryKey: ["threads", "list"] });
      if (isShown.current) navigate(`/threads/${threadId}`);
    },
  });
  const starters = modesOf(schema).includes("Message") ? startersOf(assistant, assistants) : [];
  return (
    <div className={styles.new}>
      <div className={styles.welcome}>
        {assistant === undefined ? (
          <Skeleton lines={2} />
        ) : (
          <>
            <h2>{truncate(assistant.name)}</h2>
            <p className="faint">{assistant.description ?? `Graph ${truncate(assistant.graph_id)}`}</p>
            {starters.length > 0 && (
              <Starters
                starters={starters}
                onChoose={(text) => setFilled({ text, count: (filled?.count ?? 0) + 1 })}
              />
            )}
          </>
        )}
      </div>
      <div className={styles.below}>
        <ErrorNotice error={begin.error} />
        <ReadingNotice schemas={schemas.data} />
        {assistant !== undefined && (
          <Composer
            key={`${assistant.assistant_id} ${filled?.count ?? 0}`}
            draftName={`assistant ${assistant.assistant_id}`}
            filled={filled?.text}
            schema={schema}
            isRunning={false}
            onSend={async (input) => {
              await begin.mutateAsync(input);
            }}
            onStop={() => undefined}
          />
        )}
      </div>
    </div>
  );
};
