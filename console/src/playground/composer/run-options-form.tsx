import type { Assistant, AssistantGraph } from "@langchain/langgraph-sdk";
import { useId, useState, type FormEvent } from "react";
import { useDrawing, useSchemas } from "../../parts/assistants.ts";
import { Dialog } from "../../design/dialog.tsx";
import { isObject } from "../../parts/is-object.ts";
import { ErrorNotice, ReadingNotice } from "../../parts/notice.tsx";
import { UNTOUCHED, ValueEditor, type Validity } from "../../parts/value-editor.tsx";
import { EVERY_NODE, NO_OPTIONS, type RunOptions } from "./run-options.ts";
import styles from "./run-options.module.css";

/** `Every node` covers further nodes. */
const NODES_AT_MOST = 200;

/** Breakpoints work only at nodes of the root graph. */
const nodesOf = (drawing: AssistantGraph | undefined): string[] => [
  ...new Set(
    (drawing?.nodes ?? [])
      .map(({ id }) => String(id).split(":", 1)[0] ?? "")
      .filter((name) => name !== "__start__" && name !== "__end__"),
  ),
];

const hasFields = (schema: unknown): boolean =>
  Object.keys((schema as { properties?: object } | null | undefined)?.properties ?? {}).length > 0;

const isSame = (one: unknown, other: unknown): boolean => JSON.stringify(one) === JSON.stringify(other);

const asObject = (value: unknown): Record<string, unknown> => (isObject(value) ? value : {});

interface RunOptionsFormProps {
  assistant: Assistant;
  options: RunOptions;
  onSave(options: RunOptions): void;
  onClose(): void;
}

export const RunOptionsForm = ({ assistant, options, onSave, onClose }: RunOptionsFormProps) => {
  const { assistant_id: assistantId, name } = assistant;
  const [draft, setDraft] = useState(options);
  const [context, setContext] = useState<Validity>(UNTOUCHED);
  const [configurable, setConfigurable] = useState<Validity>(UNTOUCHED);
  const drawing = useDrawing(assistantId);
  const nodes = nodesOf(drawing.data);
  const schemas = useSchemas(assistantId);
  const id = useId();
  const change = (part: Partial<RunOptions>): void => setDraft((now) => ({ ...now, ...part }));
  const save = (event: FormEvent): void => {
    event.preventDefault();
    onSave(draft);
    onClose();
  };
  const { context_schema: contextSchema, config_schema: givenConfigSchema } = schemas.data ?? {};
  // Graphs with a context declare the same schema for both and read the context.
  const configSchema = isSame(contextSchema, givenConfigSchema) ? undefined : givenConfigSchema;
  const shown = nodes.slice(0, NODES_AT_MOST);
  return (
    <Dialog title={`Options of the next runs of ${name}`} onClose={onClose}>
      <form className="stack" onSubmit={save}>
        <section className="stack" aria-labelledby={`${id}breakpoints`}>
          <h3 id={`${id}breakpoints`}>Breakpoints</h3>
          <ErrorNotice error={drawing.error} onRetry={() => void drawing.refetch()} />
          <div className={styles.nodes} tabIndex={0} role="region" aria-label="Nodes of the graph">
            <table>
              <thead>
                <tr>
                  <th scope="col">Node</th>
                  <th scope="col">Stop before</th>
                  <th scope="col">Stop after</th>
                </tr>
              </thead>
              <tbody>
                {[EVERY_NODE, ...shown].map((node) => (
                  <NodeRow key={node} node={node} options={draft} onChange={change} />
                ))}
              </tbody>
            </table>
          </div>
          {nodes.length > shown.length && <p className="faint">The first {shown.length} nodes.</p>}
        </section>
        <ErrorNotice error={schemas.error} onRetry={() => void schemas.refetch()} />
        <ReadingNotice schemas={schemas.data} />
        {!schemas.isPending && (
          <>
            <section className="stack" aria-labelledby={`${id}context`}>
              <h3 id={`${id}context`}>Context</h3>
              <ValueEditor
                label="Context"
                schema={contextSchema ?? {}}
                value={draft.context ?? {}}
                onChange={(value, validity) => {
                  change({ context: asObject(value) });
                  setContext(validity);
                }}
              />
            </section>
            <details open={hasFields(configSchema) && !hasFields(contextSchema)}>
              <summary>Configuration</summary>
              <div className="stack">
                <ValueEditor
                  label="Configurable"
                  schema={configSchema ?? {}}
                  value={draft.configurable ?? {}}
                  onChange={(value, validity) => {
                    change({ configurable: asObject(value) });
                    setConfigurable(validity);
                  }}
                />
                <div className={styles.limit}>
                  <label htmlFor={`${id}limit`}>Recursion limit (steps)</label>
                  <input
                    id={`${id}limit`}
                    type="number"
                    min={1}
                    step={1}
                    value={draft.recursionLimit ?? ""}
                    // The browser does not send a form with an invalid hidden field and shows no message.
                    onInvalid={({ currentTarget }) =>
                      currentTarget.closest("details")?.setAttribute("open", "")
                    }
                    onChange={({ target }) =>
                      change({ recursionLimit: target.value === "" ? undefined : target.valueAsNumber })
                    }
                  />
                </div>
              </div>
            </details>
          </>
        )}
        <p className="faint">
          Empty fields use the values of the assistant. A thread keeps the context and the configuration for
          its later runs.
        </p>
        <div className={`row ${styles.actions}`}>
          <button
            type="submit"
            className="primary"
            disabled={!context.isJson || !configurable.isJson || schemas.isPending}
          >
            Use for the next runs
          </button>
          <button
            type="button"
            onClick={() => {
              onSave(NO_OPTIONS);
              onClose();
            }}
          >
            Clear all
          </button>
          {(!context.valid || !configurable.valid) && context.isJson && configurable.isJson && (
            <span className="faint">A part does not match its schema. It is sent anyway.</span>
          )}
        </div>
      </form>
    </Dialog>
  );
};

const NodeRow = ({
  node,
  options,
  onChange,
}: {
  node: string;
  options: RunOptions;
  onChange(part: Partial<RunOptions>): void;
}) => {
  const name = node === EVERY_NODE ? "Every node" : node;
  const box = (when: "before" | "after") => {
    const key = when === "before" ? "stopBefore" : "stopAfter";
    const selected = options[key];
    const isCovered = node !== EVERY_NODE && selected.includes(EVERY_NODE);
    return (
      <input
        type="checkbox"
        aria-label={`Stop ${when} ${node === EVERY_NODE ? "every node" : node}`}
        checked={isCovered || selected.includes(node)}
        disabled={isCovered}
        onChange={({ target }) =>
          onChange({ [key]: target.checked ? [...selected, node] : selected.filter((each) => each !== node) })
        }
      />
    );
  };
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>{box("before")}</td>
      <td>{box("after")}</td>
    </tr>
  );
};
