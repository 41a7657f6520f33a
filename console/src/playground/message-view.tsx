import { memo, useId, useState, type FormEvent } from "react";
import { Content, Reasoning, reasoningBeside } from "./content.tsx";
import { Subgraphs } from "./subgraphs-view.tsx";
import type { Subgraph } from "./subgraphs.ts";
import { nameOfType, textOf, typeOf, type Row, type ShownMessage, type ToolCall } from "./messages.ts";
import { ToolCalls, ToolResult } from "./tool-call.tsx";
import styles from "./message.module.css";

/** Other ways that a conversation has taken from here. */
export interface Alternatives {
  /** Which one is shown, from 0. */
  position: number;
  count: number;
}

/** What a person may do with a message; the same functions for every message, so that a change of one draws no other again. */
export interface MessageActions {
  edit(message: ShownMessage, text: string): Promise<void>;
  regenerate(message: ShownMessage): Promise<void>;
  /** @param step 1: to the next of the alternatives, -1: to the one before */
  showAlternative(message: ShownMessage, step: 1 | -1): void;
  /** The graphs that have answered the call of a tool. */
  subgraphsOfCall(call: ToolCall, result: ShownMessage | undefined): Promise<Subgraph[]>;
  /** The graphs that have made a message. */
  subgraphsOfMessage(message: ShownMessage): Promise<Subgraph[]>;
}

/** In which thread the messages are. */
export interface MessageContext {
  threadId: string;
  /** Whether nodes of the graph are graphs. */
  hasSubgraphs: boolean;
}

interface MessageViewProps {
  row: Row;
  /** The last one, and a run is going on. */
  isGrowing: boolean;
  /** Nothing is started while a run goes on. */
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
