import type { Assistant } from "@langchain/langgraph-sdk";
import { Bot, Copy, Ellipsis, History, Pencil, Settings2, Trash2, Workflow } from "lucide-react";
import { lazy, Suspense, useMemo, useState } from "react";
import { Confirmation } from "../../design/dialog.tsx";
import { IconButton } from "../../design/icon-button.tsx";
import { Menu, type MenuItem } from "../../design/menu.tsx";
import { useCommands, type Command } from "../../parts/commands.tsx";
import { useNavigate } from "../../parts/use-navigate.ts";
import { useDeleteThreads } from "./delete-threads.ts";
import { summaryOf } from "../composer/run-options.ts";
import type { ThreadRecord } from "./thread-record.ts";
import { useRunOptions } from "../composer/use-run-options.ts";

/** Loaded on demand, because the form is large and rarely opened. */
const RunOptionsForm = lazy(async () => ({
  default: (await import("../composer/run-options-form.tsx")).RunOptionsForm,
}));

interface ThreadMenuProps {
  /** Undefined for a new thread. */
  threadId: string | undefined;
  /** Undefined for a new thread, and null for a missing one. */
  record: ThreadRecord | null | undefined;
  assistant: Assistant | undefined;
  /** Undefined: the choice of the assistant stands beside this menu. */
  onAssistant?: (() => void) | undefined;
  onRename(): void;
  onCopied(words: string): void;
}

export const ThreadMenu = (props: ThreadMenuProps) => {
  const { threadId, record, assistant, onAssistant, onRename, onCopied } = props;
  const navigate = useNavigate();
  const [isDeleting, setIsDeleting] = useState(false);
  const removing = useDeleteThreads(() => navigate("/"));
  const { options, setOptions } = useRunOptions(threadId, assistant?.assistant_id);
  const [hasOptions, setHasOptions] = useState(false);
  const summary = summaryOf(options);
  const isStored = record != null;
  const assistantId = assistant?.assistant_id;
  const items = useMemo<MenuItem[]>(() => {
    if (threadId === undefined || !isStored) return [];
    const copyId = (): void =>
      void navigator.clipboard.writeText(threadId).then(
        () => onCopied("Copied."),
        () => onCopied("Not copied: the browser did not allow it."),
      );
    const toGraph = (): void => navigate(`/graph/${assistantId ?? ""}?thread=${threadId}`);
    return [
      { label: "Rename", icon: Pencil, onSelect: onRename },
      { label: "Copy id", icon: Copy, onSelect: copyId },
      { label: "Time travel", icon: History, onSelect: () => navigate(`/threads/${threadId}/history`) },
      ...(assistantId === undefined ? [] : [{ label: "Graph", icon: Workflow, onSelect: toGraph }]),
      { label: "Delete", icon: Trash2, isDanger: true, onSelect: () => setIsDeleting(true) },
    ];
  }, [threadId, isStored, assistantId, navigate, onRename, onCopied]);
  const commands = useMemo<Command[]>(
    () =>
      items.map(({ label, onSelect }) => ({
        label: `${label} (this thread)`,
        group: "Thread",
        run: onSelect,
      })),
    [items],
  );
  useCommands(commands);
  return (
    <>
      {assistant !== undefined && (
        <IconButton
          label={summary === undefined ? "Run options" : `Run options: ${summary}`}
          icon={Settings2}
          aria-pressed={summary !== undefined}
          onClick={() => setHasOptions(true)}
        />
      )}
      {record != null && (
        <Menu
          trigger={<IconButton label="More of this thread" icon={Ellipsis} />}
          items={[
            ...(onAssistant === undefined ? [] : [{ label: "Assistant", icon: Bot, onSelect: onAssistant }]),
            ...items,
          ]}
        />
      )}
      {isDeleting && record != null && (
        <Confirmation
          question="Delete this thread with all its checkpoints?"
          action="Delete"
          onConfirm={() => removing.remove([record.thread_id])}
          onClose={() => setIsDeleting(false)}
        />
      )}
      {hasOptions && assistant !== undefined && (
        <Suspense>
          <RunOptionsForm
            assistant={assistant}
            options={options}
            onSave={setOptions}
            onClose={() => setHasOptions(false)}
          />
        </Suspense>
      )}
    </>
  );
};
