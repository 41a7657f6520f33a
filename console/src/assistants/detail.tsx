import type { Assistant, AssistantVersion } from "@langchain/langgraph-sdk";
import { ArrowLeft, Bot, Ellipsis, Pencil, Trash2 } from "lucide-react";
import { useState, type ReactNode } from "react";
import { Link, useSearchParams } from "wouter";
import { EmptyState } from "../design/empty-state.tsx";
import { IconButton } from "../design/icon-button.tsx";
import { Menu } from "../design/menu.tsx";
import { PageHead } from "../design/page-head.tsx";
import { Skeleton } from "../design/skeleton.tsx";
import { Tabs } from "../design/tabs.tsx";
import { truncate } from "../design/truncate.ts";
import { isOfGraph } from "../parts/assistants.ts";
import { ErrorNotice } from "../parts/notice.tsx";
import { CopyAs } from "../parts/request-snippets/copy-as.tsx";
import { Time } from "../parts/time.tsx";
import { statusOf } from "../server/api-error.ts";
import { Configuration } from "./configuration.tsx";
import { DeleteDialog } from "./delete-dialog.tsx";
import { EditDialog } from "./edit-dialog.tsx";
import { Examples } from "./examples/examples.tsx";
import { useExampleRuns } from "./examples/use-example-runs.ts";
import { useOneAssistant, useVersions } from "./queries.ts";
import { useTrial } from "./trial/use-trial.ts";
import { Try } from "./try.tsx";
import { Versions } from "./versions.tsx";
import styles from "./assistants.module.css";

const MISSING: readonly unknown[] = [404, 422];

/** `assistantId` may be the id of a graph. */
export const AssistantDetail = ({ assistantId }: { assistantId: string }) => {
  const assistant = useOneAssistant(assistantId);
  const versions = useVersions(assistantId);
  const isMissing = MISSING.includes(statusOf(assistant.error));
  return (
    <div className="stack">
      <nav aria-label="Way back">
        <Link href="/assistants" className={styles.back}>
          <ArrowLeft aria-hidden size={14} strokeWidth={1.75} />
          All assistants
        </Link>
      </nav>
      {assistant.data === undefined && <PageHead title="Assistant" />}
      {assistant.isPending && <Skeleton lines={8} />}
      {isMissing ? (
        <EmptyState icon={Bot} title="This assistant does not exist">
          It was deleted, or the address is wrong.
        </EmptyState>
      ) : (
        <ErrorNotice error={assistant.error} onRetry={() => void assistant.refetch()} />
      )}
      {assistant.isSuccess && <ErrorNotice error={versions.error} onRetry={() => void versions.refetch()} />}
      {assistant.data !== undefined && <AssistantView assistant={assistant.data} versions={versions.data} />}
    </div>
  );
};

interface AssistantViewProps {
  assistant: Assistant;
  /** Newest first. */
  versions: readonly AssistantVersion[] | undefined;
}

const AssistantView = ({ assistant, versions }: AssistantViewProps) => {
  const [open, setOpen] = useState<"edit" | "delete">();
  const [params, setParams] = useSearchParams();
  const trial = useTrial(assistant);
  const runs = useExampleRuns(assistant);
  const close = (): void => setOpen(undefined);
  const { assistant_id, graph_id, name, description, version, updated_at } = assistant;
  const reference = encodeURIComponent(assistant_id);
  const ofVersions = (view: (all: readonly AssistantVersion[]) => ReactNode) => () => (
    <div className={styles.panel}>{versions === undefined ? <Skeleton lines={6} /> : view(versions)}</div>
  );
  const tabs = [
    {
      id: "configuration",
      label: "Configuration",
      content: () => (
        <div className={styles.panel}>
          <Configuration assistant={assistant} />
        </div>
      ),
    },
    {
      id: "versions",
      label: (
        <span className="row">
          Versions {versions !== undefined && <span className="faint">{versions.length}</span>}
        </span>
      ),
      content: ofVersions((all) => <Versions assistant={assistant} versions={all} />),
    },
    {
      id: "try",
      label: "Try",
      content: ofVersions((all) => <Try assistant={assistant} versions={all} trial={trial} />),
    },
    {
      id: "examples",
      label: "Examples",
      content: ofVersions((all) => <Examples assistant={assistant} versions={all} runs={runs} />),
    },
  ];
  const chosen = tabs.find(({ id }) => id === params.get("tab"))?.id ?? "configuration";
  const hasOwnAction = chosen === "try" || chosen === "examples";
  return (
    <>
      <PageHead
        title={<span className={styles.name}>{truncate(name) || "Unnamed"}</span>}
        actions={
          <>
            <Link
              href={`/?assistant=${reference}`}
              className={hasOwnAction ? styles.link : `${styles.link} ${styles.primary}`}
            >
              Use in the playground
            </Link>
            <button type="button" onClick={() => setOpen("edit")}>
              <Pencil aria-hidden size={14} strokeWidth={1.75} />
              Edit
            </button>
            {!isOfGraph(assistant) && (
              <Menu
                trigger={<IconButton label="More actions" icon={Ellipsis} />}
                items={[{ label: "Delete", icon: Trash2, isDanger: true, onSelect: () => setOpen("delete") }]}
              />
            )}
          </>
        }
      />
      {description && <p className={styles.name}>{description.slice(0, 2_000)}</p>}
      <div className={`row faint ${styles.facts}`}>
        <span>
          Graph <Link href={`/graph/${reference}`}>{graph_id}</Link>
        </span>
        <span>Version {version} is active</span>
        <span>
          Updated <Time iso={updated_at} />
        </span>
        <code className={styles.name}>{assistant_id}</code>
        <CopyAs request={() => ({ method: "GET", path: `/assistants/${reference}` })} />
      </div>
      {isOfGraph(assistant) && (
        <p className="faint">
          This is the default assistant of its graph, so it cannot be deleted. To restore it, activate version
          1.
        </p>
      )}
      <Tabs
        label="Parts of the assistant"
        tabs={tabs}
        chosen={chosen}
        onChoose={(tab) => setParams({ tab }, { replace: true })}
      />
      {open === "edit" && (
        <EditDialog assistant={assistant} next={(versions?.[0]?.version ?? version) + 1} onClose={close} />
      )}
      {open === "delete" && <DeleteDialog assistant={assistant} onClose={close} />}
    </>
  );
};
