import type { Assistant } from "@langchain/langgraph-sdk";
import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { Link, useLocation } from "wouter";
import { Dialog } from "../design/dialog.tsx";
import { isOfGraph } from "../parts/assistants.ts";
import { JsonView } from "../parts/json.tsx";
import { ErrorNotice } from "../parts/notice.tsx";
import { truncate } from "../design/truncate.ts";
import { Time } from "../parts/time.tsx";
import { useConnection } from "../server/connection.tsx";
import { DraftForm, type AssistantDraft } from "./draft.tsx";
import { useAssistantChange, useOneAssistant, useVersions } from "./queries.ts";
import { Versions } from "./versions.tsx";
import styles from "./assistants.module.css";

/** `assistantId` may be the id of a graph. */
export const AssistantDetail = ({ assistantId }: { assistantId: string }) => {
  const assistant = useOneAssistant(assistantId);
  const versions = useVersions(assistantId);
  return (
    <div className="stack">
      <nav aria-label="Way back">
        <Link href="/assistants">All assistants</Link>
      </nav>
      {assistant.data === undefined ? (
        <h1>Assistant</h1>
      ) : (
        <AssistantView
          assistant={assistant.data}
          next={(versions.data?.[0]?.version ?? assistant.data.version) + 1}
        />
      )}
      <ErrorNotice error={assistant.error} onRetry={() => void assistant.refetch()} />
      {assistant.isSuccess && <ErrorNotice error={versions.error} onRetry={() => void versions.refetch()} />}
      {assistant.data !== undefined && versions.data !== undefined && (
        <Versions assistant={assistant.data} versions={versions.data} />
      )}
    </div>
  );
};

const AssistantView = ({ assistant, next }: { assistant: Assistant; next: number }) => {
  const [open, setOpen] = useState<"edit" | "delete">();
  const close = (): void => setOpen(undefined);
  const { assistant_id, graph_id, name, description, version, updated_at } = assistant;
  const reference = encodeURIComponent(assistant_id);
  return (
    <>
      <h1 className={styles.name}>{truncate(name) || "Unnamed"}</h1>
      {description && <p className={styles.name}>{description}</p>}
      <p className="row">
        <span>
          Graph <Link href={`/graph/${reference}`}>{graph_id}</Link>
        </span>
        <span>Version {version} is active</span>
        <span className="faint">
          Updated <Time iso={updated_at} />
        </span>
      </p>
      <p className={`faint ${styles.name}`}>
        <code>{assistant_id}</code>
      </p>
      <div className="row">
        <Link href={`/?assistant=${reference}`}>Use in the playground</Link>
        <button type="button" onClick={() => setOpen("edit")}>
          Edit
        </button>
        {!isOfGraph(assistant) && (
          <button type="button" className="danger" onClick={() => setOpen("delete")}>
            Delete
          </button>
        )}
      </div>
      {isOfGraph(assistant) && (
        <p className="faint">
          This is the default assistant of its graph, so it cannot be deleted. To restore it, activate version
          1.
        </p>
      )}
      {(["context", "config", "metadata"] as const).map((field) => (
        <section key={field} className="stack" aria-labelledby={`heading-${field}`}>
          <h2 id={`heading-${field}`}>
            {{ context: "Context", config: "Config", metadata: "Metadata" }[field]}
          </h2>
          <JsonView value={assistant[field] ?? {}} depth={2} />
        </section>
      ))}
      {open === "edit" && <Edit assistant={assistant} next={next} onClose={close} />}
      {open === "delete" && <DeleteDialog assistant={assistant} onClose={close} />}
    </>
  );
};

interface ChangeProps {
  assistant: Assistant;
  onClose(): void;
}

const revisionOf = ({ version, updated_at }: Assistant): string => `${version} ${updated_at}`;

const Edit = ({ assistant, next, onClose }: ChangeProps & { next: number }) => {
  const { client } = useConnection();
  const queries = useQueryClient();
  const { assistant_id, graph_id, name, description, context, config, metadata } = assistant;
  const [seen, setSeen] = useState(revisionOf(assistant));
  const update = useAssistantChange(async (draft: AssistantDraft) => {
    // A version replaces all fields, so saving would silently undo concurrent changes.
    const now = await client.assistants.get(assistant_id);
    if (revisionOf(now) !== seen) {
      setSeen(revisionOf(now));
      await queries.invalidateQueries({ queryKey: ["assistants"] });
      throw new Error(
        `The assistant has changed since you opened it: version ${now.version} is active now. ` +
          "Your version does not contain these changes. Save again to create it anyway.",
      );
    }
    return client.assistants.update(assistant_id, { ...draft });
  }, onClose);
  return (
    <Dialog title={`Edit ${name || "the assistant"}`} onClose={onClose}>
      <DraftForm
        graphId={graph_id}
        initial={{
          ...{ name, description: description ?? "", context: context ?? {}, config },
          metadata: (metadata ?? {}) as Record<string, unknown>,
        }}
        action={`Save as version ${next}`}
        isBusy={update.isPending}
        error={update.error}
        onSubmit={(draft) => update.mutate(draft)}
      >
        <p className="notice">
          Saving creates version {next} and activates it. The version has only the context and the config
          shown here. Metadata are added to the existing metadata.
        </p>
      </DraftForm>
    </Dialog>
  );
};

const DeleteDialog = ({ assistant, onClose }: ChangeProps) => {
  const { client } = useConnection();
  const [, navigate] = useLocation();
  const [withThreads, setWithThreads] = useState(false);
  const remove = useAssistantChange(
    () => client.assistants.delete(assistant.assistant_id, { deleteThreads: withThreads }),
    () => navigate("/assistants"),
  );
  return (
    <Dialog title={`Delete ${assistant.name || "the assistant"}?`} onClose={onClose}>
      <p>This deletes all its versions and cannot be undone.</p>
      <label className="row">
        <input
          type="checkbox"
          checked={withThreads}
          onChange={({ target }) => setWithThreads(target.checked)}
        />
        Also delete the threads of its runs
      </label>
      <ErrorNotice error={remove.error} />
      <div className="row">
        <button type="button" className="danger" disabled={remove.isPending} onClick={() => remove.mutate()}>
          Delete assistant
        </button>
        <button type="button" onClick={onClose}>
          Go back
        </button>
      </div>
    </Dialog>
  );
};
