import { contentText } from "../../parts/message-text.ts";
import { memo, useState } from "react";
import { Link } from "wouter";
import { truncate } from "../../design/truncate.ts";
import { Content, Reasoning, reasoningBeside } from "./content.tsx";
import { EditForm } from "./edit-form.tsx";
import type { Alternatives, MessageActions } from "./message-actions.ts";
import { MessageControls } from "./message-controls.tsx";
import { Subgraphs } from "./subgraphs-view.tsx";
import { nameOfType, typeOf, type Row } from "./messages.ts";
import { stepsOf, ToolResult, ToolSteps, type DurationOf } from "./tool-call.tsx";
import styles from "./message.module.css";

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
  /** Its text was kept when the user stopped the run. */
  isStopped: boolean;
  /** E.g. `gpt-5 · 1.9 s · 907 tokens`, under the answer of a turn. */
  figures: string | undefined;
  /** Of the answer. */
  runId: string | undefined;
  alternatives: Alternatives | undefined;
  actions: MessageActions;
  context: MessageContext;
  durationOf: DurationOf;
}

/** Their looks say who wrote them. */
const HAS_OWN_LOOK: ReadonlySet<string> = new Set(["human", "ai"]);

export const MessageView = memo((props: MessageViewProps) => {
  const { row, isGrowing, isRunning, isStopped, figures, runId, alternatives, actions, context } = props;
  const { message, more, results } = row;
  const [isEdited, setIsEdited] = useState(false);
  const [isOpen, setIsOpen] = useState(false);
  const type = typeOf(message);
  const text = contentText(message.content);
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
  const steps = stepsOf(message, more, results);
  return (
    <div
      className={styles.message}
      data-type={type}
      data-step={steps.length > 0 && figures === undefined && !isStopped}
    >
      <p className={HAS_OWN_LOOK.has(type) ? "unseen" : styles.name}>
        {truncate(name)}
        {typeof message.name === "string" && message.name !== name && <span> {truncate(message.name)}</span>}
      </p>
      <div className={styles.body}>
        {reasoning !== undefined && <Reasoning text={reasoning} isOpen={isGrowing && text === ""} />}
        {type === "tool" ? (
          <ToolResult message={message} />
        ) : (
          <Content content={message.content} isGrowing={isGrowing} />
        )}
        {steps.length > 0 && (
          <ToolSteps
            steps={steps}
            isRunning={isRunning}
            durationOf={props.durationOf}
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
        )}
      </div>
      {isOpen && (
        <Subgraphs
          threadId={context.threadId}
          of={message.id ?? ""}
          revision=""
          read={() => actions.subgraphsOfMessage(message)}
          showsEmpty
        />
      )}
      <div className={styles.foot}>
        {isStopped && (
          <span className={styles.stopped} title="The server keeps no unfinished answer.">
            Stopped · not stored
          </span>
        )}
        {figures !== undefined &&
          (runId === undefined ? (
            <span className={styles.figures}>{figures}</span>
          ) : (
            <Link href={`/runs/${runId}`} className={styles.figures ?? ""}>
              {figures}
            </Link>
          ))}
        <MessageControls
          message={message}
          type={type}
          copied={isGrowing ? "" : text}
          isEnabled={!isRunning && !isStopped}
          alternatives={alternatives}
          actions={actions}
          onEdit={() => setIsEdited(true)}
          inside={
            context.hasSubgraphs ? { isOpen, toggle: () => setIsOpen((wasOpen) => !wasOpen) } : undefined
          }
        />
      </div>
    </div>
  );
});
MessageView.displayName = "MessageView";
