import { contentText } from "../parts/message-text.ts";
import type { Assistant } from "@langchain/langgraph-sdk";
import { useQueryClient } from "@tanstack/react-query";
import { MessageSquare } from "lucide-react";
import { useCallback, useEffect, useMemo, useState } from "react";
import { EmptyState } from "../design/empty-state.tsx";
import { Skeleton } from "../design/skeleton.tsx";
import { useDrawing, useSchemas } from "../parts/assistants.ts";
import { useCommands, type Command } from "../parts/commands.tsx";
import { InterruptPanel, interruptsOf } from "../parts/interrupts/interrupts.tsx";
import { ErrorNotice, ReadingNotice } from "../parts/notice.tsx";
import { useBranches } from "./live-thread/branches.ts";
import { Composer } from "./composer/composer.tsx";
import type { InputSchema } from "./composer/input-schema.ts";
import { firstMessages } from "./composer/first-input.ts";
import { heldInputs, keepHeld, type HeldInput } from "./composer/held-messages.ts";
import { useLiveThread } from "./live-thread/live-thread.ts";
import { LiveSubgraphs } from "./live-thread/live-subgraphs.tsx";
import { MessageList } from "./messages/message-list.tsx";
import type { MessageActions } from "./messages/message-actions.ts";
import { typeOf } from "./messages/messages.ts";
import { HeldMessages, QueuedRuns } from "./queued-runs.tsx";
import type { RunOptions } from "./composer/run-options.ts";
import type { ThreadRecord } from "./threads/thread-record.ts";
import styles from "./conversation.module.css";

interface ConversationProps {
  assistant: Assistant;
  threadId: string;
  record: ThreadRecord | null | undefined;
  options: RunOptions;
}

export default function Conversation({ assistant, threadId, record, options }: ConversationProps) {
  const queries = useQueryClient();
  const live = useLiveThread(assistant.assistant_id, threadId, record, options);
  const branches = useBranches(threadId, live, record);
  const schemas = useSchemas(assistant.assistant_id);
  const [held, setHeld] = useState(() => heldInputs(threadId));
  useEffect(() => keepHeld(threadId, held), [threadId, held]);

  const { edit, regenerate, showAlternative, subgraphsOfCall, subgraphsOfMessage } = branches;
  const actions = useMemo<MessageActions>(
    () => ({ edit, regenerate, showAlternative, subgraphsOfCall, subgraphsOfMessage }),
    [edit, regenerate, showAlternative, subgraphsOfCall, subgraphsOfMessage],
  );
  const drawing = useDrawing(assistant.assistant_id);
  const hasSubgraphs = drawing.data?.nodes.some(({ id }) => String(id).includes(":")) ?? false;
  const context = useMemo(() => ({ threadId, hasSubgraphs }), [threadId, hasSubgraphs]);
  const { isRunning, isReading, error } = live;
  const isFirst = branches.messages.length === 0 && (isReading || isRunning);
  const messages = isFirst ? firstMessages(queries, threadId) : branches.messages;
  const { stop: stopRun } = live;
  const stop = useCallback(
    (): void =>
      void stopRun().then(
        (taken) => setHeld((before) => [...before, ...taken]),
        () => undefined,
      ),
    [stopRun],
  );
  const commands = useMemo<Command[]>(
    () =>
      isRunning
        ? [{ label: "Stop the run", group: "Thread", keys: "Escape", worksInText: true, run: stop }]
        : [],
    [isRunning, stop],
  );
  useCommands(commands);
  const letGo = ({ id }: HeldInput): void => setHeld((all) => all.filter((one) => one.id !== id));
  // The server takes any input to an interrupted thread as the answer.
  const { elsewhere } = branches;
  const hasInterrupts = !isRunning && elsewhere === undefined && interruptsOf(record).length > 0;
  return (
    <div className={styles.conversation}>
      {messages.length > 0 ? (
        <MessageList
          messages={messages}
          isRunning={isRunning}
          alternatives={branches.alternatives}
          runOf={branches.runOf}
          stopped={live.stopped}
          actions={actions}
          context={context}
        />
      ) : isReading ? (
        <div className={styles.loading}>
          <Skeleton lines={6} label="Loading the messages" />
        </div>
      ) : (
        <EmptyState
          icon={MessageSquare}
          title={isRunning ? "The graph is running" : "This thread has no messages yet"}
        >
          {isRunning ? "Its first message will appear here." : "Write one below; the answer appears here."}
        </EmptyState>
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
        <HeldMessages
          held={held}
          onSend={(one) =>
            void branches.send(one.input).then(
              () => letGo(one),
              () => undefined,
            )
          }
          onWithdraw={letGo}
        />
        {!hasInterrupts && <ReadingNotice schemas={schemas.data} />}
        {!hasInterrupts && (
          <Composer
            key={assistant.assistant_id}
            draftName={`thread ${threadId}`}
            recall={() =>
              messages.flatMap((message) =>
                typeOf(message) === "human" ? contentText(message.content) || [] : [],
              )
            }
            schema={schemas.data?.input_schema as InputSchema | null | undefined}
            isRunning={isRunning}
            onSend={branches.send}
            onStop={stop}
          />
        )}
      </div>
    </div>
  );
}
