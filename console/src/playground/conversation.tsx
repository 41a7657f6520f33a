import type { Assistant } from "@langchain/langgraph-sdk";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useMemo, useState } from "react";
import { useDrawing, useSchemas } from "../parts/assistants.ts";
import { Empty, ErrorNotice, ReadingNotice } from "../parts/notice.tsx";
import { useBranches } from "./branches.ts";
import { Composer } from "./composer.tsx";
import type { InputSchema } from "./input-schema.ts";
import { takeFirstInput } from "./first-input.ts";
import { InterruptPanel, interruptsOf } from "../parts/interrupts/interrupts.tsx";
import { useLiveThread, type Input } from "./live-thread.ts";
import { LiveSubgraphs } from "./live-subgraphs.tsx";
import { MessageList } from "./message-list.tsx";
import type { MessageActions } from "./message-view.tsx";
import { QueuedRuns } from "./queued-runs.tsx";
import type { RunOptions } from "./run-options.ts";
import type { ThreadRecord } from "./thread-record.ts";
import styles from "./conversation.module.css";

interface ConversationProps {
  assistant: Assistant;
  threadId: string;
  record: ThreadRecord | null | undefined;
  options: RunOptions;
}

export const Conversation = ({ assistant, threadId, record, options }: ConversationProps) => {
  const queries = useQueryClient();
  const live = useLiveThread(assistant.assistant_id, threadId, record, options);
  const branches = useBranches(threadId, live, record);
  const schemas = useSchemas(assistant.assistant_id);
  const { send } = live;
  /** If the server rejected it. */
  const [returned, setReturned] = useState<Input>();
  useEffect(() => {
    const input = takeFirstInput(queries, threadId);
    if (input !== undefined) send(input).catch(() => setReturned(input));
  }, [queries, send, threadId]);

  const { edit, regenerate, showAlternative, subgraphsOfCall, subgraphsOfMessage } = branches;
  const actions = useMemo<MessageActions>(
    () => ({ edit, regenerate, showAlternative, subgraphsOfCall, subgraphsOfMessage }),
    [edit, regenerate, showAlternative, subgraphsOfCall, subgraphsOfMessage],
  );
  const drawing = useDrawing(assistant.assistant_id);
  const hasSubgraphs = drawing.data?.nodes.some(({ id }) => String(id).includes(":")) ?? false;
  const context = useMemo(() => ({ threadId, hasSubgraphs }), [threadId, hasSubgraphs]);
  const say = (input: Input): Promise<void> => branches.send(input);
  const { isRunning, isReading, error } = live;
  const { messages } = branches;
  // The server takes any input to an interrupted thread as the answer.
  const { elsewhere } = branches;
  const hasInterrupts = !isRunning && elsewhere === undefined && interruptsOf(record).length > 0;
  return (
    <div className={styles.conversation}>
      {messages.length > 0 || isReading ? (
        <MessageList
          messages={messages}
          isRunning={isRunning}
          alternatives={branches.alternatives}
          actions={actions}
          context={context}
        />
      ) : (
        <div className={styles.empty}>
          <Empty>{isRunning ? "The graph is running." : "This thread has no messages yet."}</Empty>
        </div>
      )}
      <p role="status" className="unseen">
        {isRunning ? "The graph is running." : ""}
      </p>
      <div className={styles.below}>
        {isRunning && <LiveSubgraphs stream={live.stream} />}
        <ErrorNotice error={isRunning ? undefined : (branches.error ?? error)} onRetry={live.retry} />
        {elsewhere !== undefined && (
          <p className="notice row">
            {elsewhere === "earlier"
              ? "This is an earlier state of the thread. Your next message starts a new branch here."
              : "This is another branch of the thread. Your next message continues it."}
            {branches.next.some((node) => node !== "__start__") && (
              <button type="button" onClick={() => void branches.continueRun().catch(() => undefined)}>
                Continue with {branches.next.join(", ")}
              </button>
            )}
            <button type="button" onClick={branches.showNewest}>
              Show the newest
            </button>
          </p>
        )}
        {!isRunning && elsewhere === undefined && (
          <InterruptPanel
            record={record}
            next={branches.next}
            onAnswer={live.answer}
            onContinue={branches.continueRun}
          />
        )}
        {(isRunning || record?.status === "busy") && <QueuedRuns threadId={threadId} />}
        {!hasInterrupts && <ReadingNotice schemas={schemas.data} />}
        {!hasInterrupts && (
          <Composer
            key={`${assistant.assistant_id} ${returned === undefined}`}
            returned={returned}
            schema={schemas.data?.input_schema as InputSchema | null | undefined}
            isRunning={isRunning}
            onSend={say}
            onStop={() => void live.stop().catch(() => undefined)}
          />
        )}
      </div>
    </div>
  );
};
