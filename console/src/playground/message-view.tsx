import { memo, useId, useState, type FormEvent } from "react";
import { Content, Reasoning, reasoningBeside } from "./content.tsx";
import { textOf, toolCallsOf, typeOf, type Row, type ShownMessage } from "./messages.ts";
import { ToolCallView, ToolResult } from "./tool-call.tsx";
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
}

interface MessageViewProps {
  row: Row;
  /** The last one, and a run is going on. */
  isGrowing: boolean;
  /** Nothing is started while a run goes on. */
  isRunning: boolean;
  alternatives: Alternatives | undefined;
  actions: MessageActions;
}

const NAMES: ReadonlyMap<string, string> = new Map([
  ["human", "You"],
  ["ai", "Assistant"],
  ["tool", "Tool"],
  ["system", "System"],
]);

export const MessageView = memo(({ row, isGrowing, isRunning, alternatives, actions }: MessageViewProps) => {
  const { message, results } = row;
  const [isEdited, setIsEdited] = useState(false);
  const [copied, setCopied] = useState(false);
  const type = typeOf(message);
  const text = textOf(message.content);
  const reasoning = reasoningBeside(message.additional_kwargs);
  const name = NAMES.get(type) ?? type;
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
      {toolCallsOf(message).map((call, index) => (
        <ToolCallView
          key={call.id ?? index}
          call={call}
          result={results.find(({ tool_call_id }) => tool_call_id === call.id)}
          isRunning={isRunning}
        />
      ))}
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
        <label htmlFor={id}>Your message, changed</label>
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
