import { Bot, MessageCircleOff, PanelLeft, PanelRight } from "lucide-react";
import { lazy, Suspense, useCallback, useEffect, useState } from "react";
import { Panel, PanelGroup, PanelResizeHandle } from "react-resizable-panels";
import { Link, useParams } from "wouter";
import { Dialog } from "../design/dialog.tsx";
import { EmptyState } from "../design/empty-state.tsx";
import { IconButton } from "../design/icon-button.tsx";
import { Skeleton } from "../design/skeleton.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { Status } from "../parts/status.tsx";
import { useChosenAssistant } from "./assistants.ts";
import { AssistantChoice } from "./assistant-choice.tsx";
import { NewThread } from "./new-thread.tsx";
import { ThreadList } from "./threads/thread-list.tsx";
import { ThreadMenu } from "./threads/thread-menu.tsx";
import { PANEL_TABS, ThreadPanel, type PanelTab } from "./panel/thread-panel.tsx";
import { PlainTitle, ThreadTitle } from "./threads/thread-title.tsx";
import { useThreadRecord } from "./threads/thread-record.ts";
import { useRunOptions } from "./composer/use-run-options.ts";
import { useIsWide } from "../design/use-is-wide.ts";
import styles from "./playground.module.css";

const LIST_FROM_REM = 62;
const PANEL_FROM_REM = 70;
/** Beside the threads, where it leaves enough room for the conversation. */
const PANEL_AT_FIRST_FROM_REM = 85;

/** A new thread needs none of it before the first message is sent. */
const LOADED_AFTER_MS = 1_000;
const loadConversation = () => import("./conversation.tsx");
const Conversation = lazy(loadConversation);

const PANEL_STORED = "threadloom-panel";

/** The tab of the panel beside the conversation, remembered for this browser; undefined: closed. */
const usePanelTab = (isOpenAtFirst: boolean) => {
  const [stored, setStored] = useState(() => localStorage.getItem(PANEL_STORED));
  const tab = stored === null && isOpenAtFirst ? "state" : PANEL_TABS.find((one) => one === stored);
  const choose = (chosen: PanelTab | undefined): void => {
    localStorage.setItem(PANEL_STORED, chosen ?? "closed");
    setStored(chosen ?? "closed");
  };
  return { tab, choose };
};

const Loading = () => (
  <div className={styles.loading}>
    <Skeleton lines={6} label="Loading the thread" />
  </div>
);

/** A new thread has no metadata before its first run. */
const NO_METADATA: Readonly<Record<string, unknown>> = {};

/**
 * One thread, or a new one, with all that was chosen, written and opened for it. Set `key` to the thread: nothing
 * here may reach another one.
 * @param props.threadId undefined: a new thread
 */
const ThreadView = ({ threadId }: { threadId: string | undefined }) => {
  const record = useThreadRecord(threadId);
  const isMissing = record.data === null;
  const { assistant, assistants, isPending, error, choose } = useChosenAssistant(
    threadId === undefined ? NO_METADATA : record.data == null ? undefined : (record.data.metadata ?? {}),
  );
  const { options } = useRunOptions(threadId, assistant?.assistant_id);
  const hasRoomForThreads = useIsWide(LIST_FROM_REM);
  const hasRoomForPanel = useIsWide(PANEL_FROM_REM);
  const panel = usePanelTab(useIsWide(PANEL_AT_FIRST_FROM_REM));
  const [sheet, setSheet] = useState<"threads" | "panel" | "assistant">();
  const [isRenaming, setIsRenaming] = useState(false);
  const rename = useCallback(() => setIsRenaming(true), []);
  const [said, setSaid] = useState("");
  const panelIsOpen = hasRoomForPanel ? panel.tab !== undefined : sheet === "panel";
  const showPanel = (isOpen: boolean): void => {
    if (!hasRoomForPanel) setSheet(isOpen ? "panel" : undefined);
    else panel.choose(isOpen ? "state" : undefined);
  };
  const panelOf = (onClose?: () => void) =>
    threadId !== undefined &&
    record.data != null &&
    assistant !== undefined && (
      <ThreadPanel
        threadId={threadId}
        assistant={assistant}
        record={record.data}
        chosen={panel.tab ?? "state"}
        onChoose={panel.choose}
        onClose={onClose}
      />
    );
  const choice = (
    <AssistantChoice assistants={assistants} chosen={assistant} isPending={isPending} onChoose={choose} />
  );
  const middle = (
    <div className={styles.middle}>
      <div className={styles.bar}>
        {!hasRoomForThreads && (
          <IconButton label="Threads" icon={PanelLeft} onClick={() => setSheet("threads")} />
        )}
        {record.data == null ? (
          <PlainTitle>
            {threadId === undefined ? (
              "New thread"
            ) : isMissing ? (
              "Thread"
            ) : (
              <span className="unseen">Thread</span>
            )}
          </PlainTitle>
        ) : (
          <ThreadTitle record={record.data} isEditing={isRenaming} onEdit={setIsRenaming} />
        )}
        {record.data != null && record.data.status !== "idle" && <Status status={record.data.status} />}
        <span role="status" className="faint">
          {said}
        </span>
        <span className={styles.last}>
          {!isMissing && (hasRoomForThreads || threadId === undefined) && choice}
          {!isMissing && (
            <ThreadMenu
              threadId={threadId}
              record={record.data}
              assistant={assistant}
              onAssistant={hasRoomForThreads ? undefined : () => setSheet("assistant")}
              onRename={rename}
              onCopied={setSaid}
            />
          )}
          {record.data != null && (
            <IconButton
              label="State, graph and timeline"
              icon={PanelRight}
              aria-expanded={panelIsOpen}
              onClick={() => showPanel(!panelIsOpen)}
            />
          )}
        </span>
      </div>
      <ErrorNotice error={error ?? record.error} />
      {threadId === undefined ? (
        <NewThread assistant={assistant} assistants={assistants} />
      ) : isMissing ? (
        <EmptyState
          icon={MessageCircleOff}
          title="This thread does not exist"
          action={<Link href="/">New thread</Link>}
        >
          It was deleted, or its address is incomplete.
        </EmptyState>
      ) : assistant !== undefined && record.data !== undefined ? (
        <Suspense fallback={<Loading />}>
          <Conversation
            key={assistant.assistant_id}
            assistant={assistant}
            threadId={threadId}
            record={record.data}
            options={options}
          />
        </Suspense>
      ) : isPending ? (
        record.error === null && <Loading />
      ) : (
        error == null && (
          <EmptyState icon={Bot} title="Choose an assistant" action={!hasRoomForThreads && choice}>
            The graph of this thread is not on this server. Another graph may not understand its state.
          </EmptyState>
        )
      )}
    </div>
  );
  const panelBeside = hasRoomForPanel && panel.tab !== undefined && panelOf(() => panel.choose(undefined));
  return (
    <>
      <PanelGroup direction="horizontal" autoSaveId="threadloom-playground" className={styles.group}>
        <Panel id="conversation" order={1} minSize={35}>
          {middle}
        </Panel>
        {panelBeside && (
          <>
            <PanelResizeHandle className={styles.handle} aria-label="Width of the panel" />
            <Panel id="panel" order={2} defaultSize={38} minSize={22}>
              <aside className={styles.panel} aria-label="State, graph and timeline">
                {panelBeside}
              </aside>
            </Panel>
          </>
        )}
      </PanelGroup>
      {sheet === "panel" && !hasRoomForPanel && (
        <Dialog title="State, graph and timeline" place="side" onClose={() => setSheet(undefined)}>
          {panelOf()}
        </Dialog>
      )}
      {sheet === "assistant" && !hasRoomForThreads && (
        <Dialog title="Assistant of the next messages" place="side" onClose={() => setSheet(undefined)}>
          {choice}
        </Dialog>
      )}
      {sheet === "threads" && !hasRoomForThreads && (
        <Dialog title="Threads" place="side" onClose={() => setSheet(undefined)}>
          <div className={styles.sheet}>
            <ThreadList current={threadId} onChoose={() => setSheet(undefined)} />
          </div>
        </Dialog>
      )}
    </>
  );
};

export default function PlaygroundPage() {
  const { threadId } = useParams<{ threadId?: string }>();
  const hasRoomForThreads = useIsWide(LIST_FROM_REM);
  useEffect(() => {
    // A failure is reported when the conversation is shown.
    const loading = setTimeout(() => void loadConversation().catch(() => undefined), LOADED_AFTER_MS);
    return () => clearTimeout(loading);
  }, []);
  return (
    <div className={styles.page}>
      {hasRoomForThreads && (
        <aside className={styles.side} aria-label="Threads">
          <ThreadList current={threadId} />
        </aside>
      )}
      <ThreadView key={threadId ?? "new thread"} threadId={threadId} />
    </div>
  );
}
