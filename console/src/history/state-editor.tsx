import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useEffectEvent, useId, useRef, useState } from "react";
import type { AssistantGraph, ThreadState } from "@langchain/langgraph-sdk";
import { useDrawing, useSchemas } from "../parts/assistants.ts";
import type { CheckpointRef } from "../parts/checkpoints.ts";
import { Dialog } from "../design/dialog.tsx";
import { ErrorNotice, ReadingNotice } from "../parts/notice.tsx";
import { UNTOUCHED, ValueEditor } from "../parts/value-editor.tsx";
import { useConnection } from "../server/connection.tsx";
import { isObject } from "../parts/is-object.ts";

const nodesOf = ({ nodes }: AssistantGraph, namespace: string): string[] => {
  const path = namespace === "" ? [] : namespace.split("|").map((segment) => segment.split(":", 1)[0] ?? "");
  const start = path.map((name) => `${name}:`).join("");
  const own = nodes
    .map(({ id }) => String(id))
    .filter((id) => id.startsWith(start))
    .map((id) => id.slice(start.length).split(":", 1)[0] ?? "");
  return [...new Set(own)].filter((name) => name !== "" && !/^__(start|end)__$/.test(name));
};

/** Unchanged values would pass through the reducers again. */
const changedKeys = (before: unknown, after: unknown): Record<string, unknown> | null => {
  if (!isObject(after)) return null;
  const known = isObject(before) ? before : {};
  const changed = Object.entries(after).filter(
    ([key, value]) =>
      JSON.stringify(value) !== JSON.stringify(Object.hasOwn(known, key) ? known[key] : undefined),
  );
  return changed.length === 0 ? null : Object.fromEntries(changed);
};

const useHeadCheck = (threadId: string) => {
  const { request } = useConnection();
  const seen = useRef<Promise<string | undefined>>(undefined);
  const read = async (): Promise<string | undefined> => {
    const { checkpoint } = await request<{ checkpoint?: { checkpoint_id?: string } | null }>(
      "GET",
      `/threads/${encodeURIComponent(threadId)}/state?select=checkpoint`,
    );
    return checkpoint?.checkpoint_id;
  };
  const readNow = useEffectEvent(() => {
    seen.current = read();
    // `check` reports the error.
    seen.current.catch(() => undefined);
  });
  useEffect(() => readNow(), []);
  return {
    /** @throws Error once, if the thread has new checkpoints, which the next run would not continue from */
    async check(): Promise<void> {
      const before = await seen.current;
      const now = await read();
      if (before === now) return;
      seen.current = Promise.resolve(now);
      throw new Error(
        "The thread has changed since you opened it. Your state becomes a separate branch, " +
          "and the next run continues from it. Store again to create this branch.",
      );
    },
  };
};

interface StateEditorProps {
  threadId: string;
  assistantId: string | undefined;
  checkpointRef: CheckpointRef;
  state: ThreadState<Record<string, unknown>>;
  onStored(checkpointId: string): void;
  onClose(): void;
}

const StateEditor = ({
  threadId,
  assistantId,
  checkpointRef,
  state,
  onStored,
  onClose,
}: StateEditorProps) => {
  const { client } = useConnection();
  const queries = useQueryClient();
  const id = useId();
  const [value, setValue] = useState<unknown>(state.values);
  const [validity, setValidity] = useState(UNTOUCHED);
  const [asNode, setAsNode] = useState("");
  const schemas = useSchemas(assistantId);
  const graph = useDrawing(assistantId);
  const changed = changedKeys(state.values, value);
  const headCheck = useHeadCheck(threadId);
  const store = useMutation({
    mutationFn: async () => {
      await headCheck.check();
      return await client.threads.updateState(threadId, {
        values: changed,
        checkpoint: { thread_id: threadId, ...checkpointRef, checkpoint_map: null },
        ...(asNode === "" ? {} : { asNode }),
      });
    },
    onSuccess: async (configured) => {
      await queries.invalidateQueries({ queryKey: ["threads", threadId] });
      onStored(String(configured.configurable?.checkpoint_id ?? ""));
    },
  });
  // The schema of a subgraph is unknown here.
  const schema = checkpointRef.checkpoint_ns === "" ? (schemas.data?.state_schema ?? {}) : {};
  const isReady = assistantId === undefined || !schemas.isPending;
  return (
    <Dialog title="Edit state" onClose={onClose}>
      <p className="faint">
        Your changes become a new checkpoint after this one. They pass through the reducers of the graph, as
        if a node wrote them: a list gets new items, and a message replaces the one with the same id.
        Unchanged keys are not written.
      </p>
      {isReady && (
        <ValueEditor
          key={schemas.status}
          label="State"
          schema={schema}
          value={value}
          onChange={(written, known) => {
            setValue(written);
            setValidity(known);
          }}
        />
      )}
      <div className="row">
        <label htmlFor={id}>As node</label>
        <select id={id} value={asNode} onChange={({ target }) => setAsNode(target.value)}>
          <option value="">the last node that wrote</option>
          {(graph.data === undefined ? [] : nodesOf(graph.data, checkpointRef.checkpoint_ns)).map((name) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      </div>
      <ErrorNotice error={schemas.error ?? graph.error} />
      <ReadingNotice schemas={schemas.data} />
      <ErrorNotice error={store.error} />
      <div className="row">
        <button
          type="button"
          className="primary"
          disabled={store.isPending || !validity.isJson || (changed === null && asNode === "")}
          onClick={() => store.mutate()}
        >
          Store as new checkpoint
        </button>
        <span className="faint" role="status">
          {changed === null ? "No changes." : `Changed: ${Object.keys(changed).join(", ")}.`}
        </span>
      </div>
    </Dialog>
  );
};

type EditStateProps = Omit<StateEditorProps, "onClose"> & { onOpen(): void };

/** The button and its dialog, which belong to one checkpoint. */
export const EditState = ({ onOpen, onStored, ...editor }: EditStateProps) => {
  const [isOpen, setIsOpen] = useState(false);
  const close = (): void => setIsOpen(false);
  return (
    <>
      <button
        type="button"
        onClick={() => {
          onOpen();
          setIsOpen(true);
        }}
      >
        Edit state…
      </button>
      {isOpen && (
        <StateEditor
          {...editor}
          onStored={(id) => {
            close();
            onStored(id);
          }}
          onClose={close}
        />
      )}
    </>
  );
};
