import { X } from "lucide-react";
import { lazy, Suspense } from "react";
import type { Assistant } from "@langchain/langgraph-sdk";
import { IconButton } from "../../design/icon-button.tsx";
import { Skeleton } from "../../design/skeleton.tsx";
import { Tabs, type Tab } from "../../design/tabs.tsx";
import { StatePanel } from "./state-panel.tsx";
import type { ThreadRecord } from "../threads/thread-record.ts";
import styles from "./thread-panel.module.css";

/** Loaded on demand, because a thread opens with its state. */
const GraphView = lazy(async () => ({
  default: (await import("../../parts/graph/graph-view.tsx")).GraphView,
}));

const TimelinePanel = lazy(() => import("./timeline-panel.tsx"));

export const PANEL_TABS = ["state", "graph", "timeline"] as const;
export type PanelTab = (typeof PANEL_TABS)[number];

interface ThreadPanelProps {
  threadId: string;
  assistant: Assistant;
  record: ThreadRecord;
  chosen: PanelTab;
  onChoose(tab: PanelTab): void;
  /** Undefined: the place around the panel has a button for that. */
  onClose?: (() => void) | undefined;
}

/** What a thread contains and does, beside its conversation. */
export const ThreadPanel = ({ threadId, assistant, record, chosen, onChoose, onClose }: ThreadPanelProps) => {
  const revision = `${record.status} ${record.state_updated_at ?? ""}`;
  const tabs: readonly (Tab & { id: PanelTab })[] = [
    {
      id: "state",
      label: "State",
      content: () => (
        <div className={styles.tab}>
          <StatePanel threadId={threadId} revision={revision} />
        </div>
      ),
    },
    {
      id: "graph",
      label: "Graph",
      content: () => (
        <div className={styles.tab}>
          <Suspense fallback={<Skeleton lines={4} />}>
            <GraphView
              key={assistant.assistant_id}
              assistantId={assistant.assistant_id}
              threadId={threadId}
              isNarrow
            />
          </Suspense>
        </div>
      ),
    },
    {
      id: "timeline",
      label: "Timeline",
      content: () => (
        <div className={styles.tab}>
          <Suspense fallback={<Skeleton lines={4} />}>
            <TimelinePanel threadId={threadId} revision={revision} />
          </Suspense>
        </div>
      ),
    },
  ];
  return (
    <Tabs
      label="Views of the thread"
      tabs={tabs}
      chosen={chosen}
      onChoose={(id) => onChoose(PANEL_TABS.find((tab) => tab === id) ?? "state")}
      actions={onClose && <IconButton label="Close the panel" icon={X} onClick={onClose} />}
    />
  );
};
