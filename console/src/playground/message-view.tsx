import { memo, useId, useState, type FormEvent } from "react";
import { Content, Reasoning, reasoningBeside } from "./content.tsx";
import { Subgraphs } from "./subgraphs-view.tsx";
import type { Subgraph } from "./subgraphs.ts";
import { nameOfType, textOf, typeOf, type Row, type ShownMessage, type ToolCall } from "./messages.ts";
import { ToolCalls, ToolResult } from "./tool-call.tsx";
import styles from "./message.module.css";

/** The branches at a message. */
export interface Alternatives {
  /** The index of the shown branch. */
  position: number;
  count: number;
}

/** The same functions for all messages, so a change of one message does not render the others. */
export interface MessageActions {
  edit(message: ShownMessage, text: string): Promise<void>;
  regenerate(message: ShownMessage): Promise<void>;
  /** @param step 1: next branch, -1: previous branch */
  showAlternative(message: ShownMessage, step: 1 | -1): void;
  /** The subgraphs that answered a tool call. */
  subgraphsOfCall(call: ToolCall, result: ShownMessage | undefined): Promise<Subgraph[]>;
  /** The subgraphs that produced a message. */
  subgraphsOfMessage(message: ShownMessage): Promise<Subgraph[]>;
}

export interface MessageContext {
  threadId: string;
  /** Whether the graph has subgraphs. */
  hasSubgraphs: boolean;
}

interface MessageViewProps {
  row: Row;
  /** The last message of a running run. */
  isGrowing: boolean;
  /** No action is possible during a run. */
  isRunning: boolean;
  alternatives: Alternatives | undefined;
  actions: MessageActions;
  context: MessageContext;
}

export const MessageView = memo((props: MessageViewProps) => {
  const { row, isGrowing, isRunning, alternatives, actions, context } = props;
  const { message, results } = row;
  const [isEdited, setIsEdited] = useState(false);
  const [copied, setCopied] = useState(false);
  const [isOpen, setIsOpen] = useState(false);
  const type = typeOf(message);
  const text = textOf(message.content);
  const reasoning = reasoningBeside(message.additional_kwargs);
  const name = nameOfType(type);
  if (isEdited)
    return (
      <EditForm
        text={text}
        onCancel={() => setIsEdited(false)}
        onSend={(changed) => {
          setIsEdited(false);
          void actions.edit(message, changed).catch(() => undefined);
        }}
      />
    );
  return (
    <div className={styles.message} data-type={type}>
      <p className={styles.name}>
        {name}
        {typeof message.name === "string" && message.name !== name && (
          <span className="faint"> {message.name}</span>
        )}
      </p>
      {reasoning !== undefined && <Reasoning text={reasoning} isOpen={isGrowing && text === ""} />}
      {type === "tool" ? (
        <ToolResult message={message} />
      ) : (
        <Content content={message.content} isGrowing={isGrowing} />
      )}
      <ToolCalls
        message={message}
        results={results}
        isRunning={isRunning}
        inside={(call, result) =>
          call.id !== undefined && (
            <Subgraphs
              threadId={context.threadId}
              of={call.id}
              revision={result === undefined ? `waits ${isRunning}` : "answered"}
              read={() => actions.subgraphsOfCall(call, result)}
            />
          )
        }
      />
      {isOpen && (
        <Subgraphs
          threadId={context.threadId}
          of={message.id ?? ""}
          revision=""
          read={() => actions.subgraphsOfMessage(message)}
          showsEmpty
        />
      )}
      <div className={styles.actions}>
        {alternatives !== undefined && (
          <span className="row" role="group" aria-label="Branches">
            <button
              type="button"
              className="plain"
              aria-label="Previous branch"
              disabled={alternatives.position === 0 || isRunning}
              onClick={() => actions.showAlternative(message, -1)}
            >
              ‹
            </button>
            <span>
              {alternatives.position + 1}/{alternatives.count}
            </span>
            <button
              type="button"
              className="plain"
              aria-label="Next branch"
              disabled={alternatives.position === alternatives.count - 1 || isRunning}
              onClick={() => actions.showAlternative(message, 1)}
            >
              ›
            </button>
          </span>
        )}
        {!isRunning && type === "human" && message.id !== undefined && (
          <button type="button" className="plain" onClick={() => setIsEdited(true)}>
            Edit
          </button>
        )}
        {!isRunning && type === "ai" && message.id !== undefined && (
          <button
            type="button"
            className="plain"
            onClick={() => void actions.regenerate(message).catch(() => undefined)}
          >
            Regenerate
          </button>
        )}
        {!isRunning && type === "ai" && message.id !== undefined && context.hasSubgraphs && (
          <button type="button" className="plain" aria-expanded={isOpen} onClick={() => setIsOpen(!isOpen)}>
            Inside
          </button>
        )}
        {!isGrowing && text !== "" && (
          <button
            type="button"
            className="plain"
            onClick={() => void navigator.clipboard.writeText(text).then(() => setCopied(true))}
          >
            {copied ? "Copied" : "Copy"}
          </button>
        )}
      </div>
    </div>
  );
});
MessageView.displayName = "MessageView";

const EditForm = ({
  text,
  onSend,
  onCancel,
}: {
  text: string;
  onSend(text: string): void;
  onCancel(): void;
}) => {
  const [changed, setChanged] = useState(text);
  const id = useId();
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    onSend(changed);
  };
  return (
    <form className={styles.edit} onSubmit={submit}>
      <div className="stack">
        <label htmlFor={id}>Edited message</label>
        <textarea
          id={id}
          rows={4}
          autoFocus
          value={changed}
          onChange={({ target }) => setChanged(target.value)}
          onKeyDown={({ key }) => key === "Escape" && onCancel()}
        />
      </div>
      <div className="row">
        <button type="submit" className="primary" disabled={changed.trim() === ""}>
          Send as a new branch
        </button>
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </form>
  );
};
