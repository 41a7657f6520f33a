import type { Assistant } from "@langchain/langgraph-sdk";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { useSchemas } from "../parts/assistants.ts";
import { truncate } from "../design/truncate.ts";
import { ErrorNotice, ReadingNotice } from "../parts/notice.tsx";
import { useConnection } from "../server/connection.tsx";
import { Composer } from "./composer.tsx";
import { keepFirstInput } from "./first-input.ts";
import type { InputSchema } from "./input-schema.ts";
import type { Input } from "./live-thread.ts";
import styles from "./new-thread.module.css";

/** The thread is created with the first input. */
export const NewThread = ({ assistant }: { assistant: Assistant | undefined }) => {
  const { client } = useConnection();
  const queries = useQueryClient();
  const [, navigate] = useLocation();
  const schemas = useSchemas(assistant?.assistant_id);
  const begin = useMutation({
    mutationFn: async (input: Input) => {
      const { thread_id } = await client.threads.create({
        metadata: { graph_id: assistant?.graph_id, assistant_id: assistant?.assistant_id },
      });
      keepFirstInput(queries, thread_id, input);
      return thread_id;
    },
    onSuccess: (threadId) => {
      void queries.invalidateQueries({ queryKey: ["threads", "list"] });
      navigate(`/threads/${threadId}`);
    },
  });
  return (
    <div className={styles.new}>
      <div className={styles.welcome}>
        {assistant !== undefined && (
          <>
            <h2>{truncate(assistant.name)}</h2>
            <p className="faint">{assistant.description ?? `Graph ${assistant.graph_id}`}</p>
          </>
        )}
      </div>
      <ErrorNotice error={begin.error} />
      <ReadingNotice schemas={schemas.data} />
      {assistant !== undefined && (
        <Composer
          key={assistant.assistant_id}
          schema={schemas.data?.input_schema as InputSchema | null | undefined}
          isRunning={false}
          onSend={async (input) => {
            await begin.mutateAsync(input);
          }}
          onStop={() => undefined}
        />
      )}
    </div>
  );
};
