import type { Assistant } from "@langchain/langgraph-sdk";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { Link, useLocation, useParams, useSearch } from "wouter";
import { useSchemas } from "../parts/assistants.ts";
import { Dialog } from "../design/dialog.tsx";
import { Empty, ErrorNotice, ReadingNotice } from "../parts/notice.tsx";
import { truncate } from "../design/truncate.ts";
import { Status } from "../parts/status.tsx";
import { useConnection } from "../server/connection.tsx";
import { assistantOfThread, useAssistant, useAssistants } from "./assistants.ts";
import { AssistantChoice } from "./assistant-choice.tsx";
import { Composer } from "./composer.tsx";
import type { InputSchema } from "./input-schema.ts";
import { Conversation } from "./conversation.tsx";
import { keepFirstInput } from "./first-input.ts";
import type { Input } from "./live-thread.ts";
import { summaryOf } from "./run-options.ts";
import { StatePanel } from "./state-panel.tsx";
import { ThreadList } from "./thread-list.tsx";
import { ThreadTitle } from "./thread-title.tsx";
import { useThreadRecord, type ThreadRecord } from "./thread-record.ts";
import { useRunOptions } from "./use-run-options.ts";
import { useIsWide } from "./window-width.ts";
import styles from "./playground.module.css";

/** The user's choice, else the assistant of the thread, else the first graph. */
const useChosenAssistant = (record: ThreadRecord | null | undefined, isNew: boolean) => {
  const named = new URLSearchParams(useSearch()).get("assistant") ?? undefined;
  const [chosenId, choose] = useState<string>();
  const list = useAssistants();
  const assistants = list.data ?? [];
  const wanted = chosenId ?? named;
  const inList = assistants.find(({ assistant_id, graph_id }) =>
    [assistant_id, graph_id].includes(wanted ?? ""),
  );
  const fetched = useAssistant(
    wanted !== undefined && list.isSuccess && inList === undefined ? wanted : undefined,
  );
  const assistant: Assistant | undefined =
    inList ??
    fetched.data ??
    assistantOfThread(record?.metadata, assistants) ??
    (isNew || record !== undefined ? assistants[0] : undefined);
  return { assistant, assistants, choose, error: list.error ?? fetched.error };
};

/** Loaded on demand, because the form is large and rarely opened. */
const RunOptionsForm = lazy(async () => ({
  default: (await import("./run-options-form.tsx")).RunOptionsForm,
}));

const OptionsButton = ({ assistant }: { assistant: Assistant }) => {
  const { options, setOptions } = useRunOptions(assistant.assistant_id);
  const [isOpen, setIsOpen] = useState(false);
  const summary = summaryOf(options);
  return (
    <>
      <button
        type="button"
        aria-pressed={summary !== undefined}
        className={styles.options}
        title={summary === undefined ? "Breakpoints, context, configuration" : `The next runs: ${summary}`}
        onClick={() => setIsOpen(true)}
      >
        Run options{summary === undefined ? "" : `: ${summary}`}
      </button>
      {isOpen && (
        <Suspense>
          <RunOptionsForm
            assistant={assistant}
            options={options}
            onSave={setOptions}
            onClose={() => setIsOpen(false)}
          />
        </Suspense>
      )}
    </>
  );
};

export default function PlaygroundPage() {
  const { threadId } = useParams<{ threadId?: string }>();
  const [, navigate] = useLocation();
  const record = useThreadRecord(threadId);
  const { assistant, assistants, choose, error } = useChosenAssistant(record.data, threadId === undefined);
  const { options } = useRunOptions(assistant?.assistant_id);
  const hasRoomForThreads = useIsWide(62);
  const hasRoomForState = useIsWide(85);
  const [listIsOpen, setListIsOpen] = useState(false);
  const [stateIsWanted, setStateIsWanted] = useState<boolean>();
  const stateIsOpen = threadId !== undefined && (stateIsWanted ?? hasRoomForState);
  const list = (
    <ThreadList
      current={threadId}
      onChoose={() => setListIsOpen(false)}
      onDeleted={(deleted) => deleted === threadId && navigate("/")}
    />
  );
  const state = threadId !== undefined && assistant !== undefined && (
    <StatePanel
      threadId={threadId}
      assistantId={assistant.assistant_id}
      revision={`${record.data?.status ?? ""} ${record.data?.state_updated_at ?? ""}`}
    />
  );
  return (
    <div className={styles.page}>
      {hasRoomForThreads && (
        <aside className={styles.side} aria-label="Threads">
          {list}
        </aside>
      )}
      <div className={styles.middle}>
        <div className={styles.bar}>
          <h1 className={threadId === undefined ? undefined : "unseen"}>Playground</h1>
          {!hasRoomForThreads && (
            <button type="button" onClick={() => setListIsOpen(true)}>
              Threads
            </button>
          )}
          <AssistantChoice assistants={assistants} chosen={assistant} onChoose={choose} />
          {assistant !== undefined && <OptionsButton assistant={assistant} />}
          {record.data != null && <ThreadTitle key={threadId} record={record.data} />}
          {record.data != null && <Status status={record.data.status} />}
          {threadId !== undefined && (
            <nav aria-label="This thread" className={styles.last}>
              <Link href={`/threads/${threadId}/history`}>Time travel</Link>
              {assistant !== undefined && (
                <Link href={`/graph/${assistant.assistant_id}?thread=${threadId}`}>Graph</Link>
              )}
            </nav>
          )}
          {threadId !== undefined && (
            <button type="button" aria-expanded={stateIsOpen} onClick={() => setStateIsWanted(!stateIsOpen)}>
              State
            </button>
          )}
        </div>
        <ErrorNotice error={error ?? record.error} />
        {threadId === undefined ? (
          <NewThread assistant={assistant} />
        ) : record.data === null ? (
          <Empty>This thread does not exist, or was deleted.</Empty>
        ) : (
          assistant !== undefined &&
          record.data !== undefined && (
            <Conversation
              key={`${threadId} ${assistant.assistant_id}`}
              assistant={assistant}
              threadId={threadId}
              record={record.data}
              options={options}
            />
          )
        )}
      </div>
      {stateIsOpen && hasRoomForState && (
        <aside className={styles.state} aria-label="State" tabIndex={0}>
          {state}
        </aside>
      )}
      {stateIsOpen && !hasRoomForState && (
        <Dialog title="State of the thread" onClose={() => setStateIsWanted(false)}>
          {state}
        </Dialog>
      )}
      {listIsOpen && !hasRoomForThreads && (
        <Dialog title="Threads" onClose={() => setListIsOpen(false)}>
          {list}
        </Dialog>
      )}
    </div>
  );
}

/** The thread is created with the first input. */
const NewThread = ({ assistant }: { assistant: Assistant | undefined }) => {
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
