import type { Assistant } from "@langchain/langgraph-sdk";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { v7 } from "uuid";
import { useSchemas } from "../parts/assistants.ts";
import { Skeleton } from "../design/skeleton.tsx";
import { truncate } from "../design/truncate.ts";
import { ErrorNotice, ReadingNotice } from "../parts/notice.tsx";
import { useNavigate } from "../parts/use-navigate.ts";
import { useConnection } from "../server/connection.tsx";
import { keepText } from "../server/tab-storage.ts";
import { Composer } from "./composer/composer.tsx";
import { keepFirstInput } from "./composer/first-input.ts";
import { modesOf, type InputSchema } from "./composer/input-schema.ts";
import type { Input } from "./composer/input.ts";
import { startRun, waitForHead } from "./live-thread/runs.ts";
import { Starters, startersOf } from "./composer/starters.tsx";
import { giveRunOptions, useRunOptions } from "./composer/use-run-options.ts";
import styles from "./new-thread.module.css";

/** A run that waits longer for a worker is shown as waiting. */
const HEAD_WITHIN_MS = 1_500;
/** There is one new thread, whichever assistant it begins with. */
const DRAFT = "new thread";
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
  const navigate = useNavigate();
  const { options } = useRunOptions(undefined, assistant?.assistant_id);
  const schemas = useSchemas(assistant?.assistant_id);
  const schema = schemas.data?.input_schema as InputSchema | null | undefined;
  /** How many questions to begin with were chosen. */
  const [filled, setFilled] = useState(0);
  const begin = useMutation({
    mutationFn: async (input: Input) => {
      const threadId = v7();
      const assistantId = assistant?.assistant_id ?? "";
      const runId = await startRun(connection, { assistantId, threadId, input, options });
      keepFirstInput(queries, threadId, input);
      giveRunOptions(queries, threadId, assistantId, options);
      // A failure to read says nothing about the run.
      await Promise.race([
        waitForHead(connection, threadId, runId).catch(() => undefined),
        pause(HEAD_WITHIN_MS),
      ]);
      return threadId;
    },
    onSuccess: (threadId) => {
      void queries.invalidateQueries({ queryKey: ["threads", "list"] });
      navigate(`/threads/${threadId}`);
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
                onChoose={(text) => {
                  keepText(DRAFT, text);
                  setFilled(filled + 1);
                }}
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
            key={`${assistant.assistant_id} ${filled}`}
            draftName={DRAFT}
            takesFocus={filled > 0}
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
