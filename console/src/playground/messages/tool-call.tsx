import { Check, ChevronRight, CircleDashed, X } from "lucide-react";
import { useState, type ReactNode } from "react";
import { Spinner } from "../../design/spinner.tsx";
import { truncate } from "../../design/truncate.ts";
import { JsonView } from "../../parts/json.tsx";
import { durationText } from "../../parts/time.tsx";
import { Content } from "./content.tsx";
import { toolCallsOf, type ShownMessage, type ToolCall } from "./messages.ts";
import styles from "./tool-call.module.css";

export interface ToolStep {
  call: ToolCall;
  result: ShownMessage | undefined;
  /** The message that calls, if it is not the row's own. */
  message?: ShownMessage;
}

/** Milliseconds by the id of a call; undefined if the page has not seen the step. */
export type DurationOf = (callId: string | undefined) => number | undefined;

interface ToolStepProps {
  step: ToolStep;
  /** Whether a result may still arrive. */
  isRunning: boolean;
  duration: number | undefined;
  /** Rendered below the result when the user opens the call. */
  inside?: (() => ReactNode) | undefined;
}

const PREVIEW_CHARACTERS = 80;
const CHARACTERS_OF_TOOL = 60;
const CHARACTERS_OF_STATUS = 30;

const previewOf = (args: unknown): string => {
  const text = typeof args === "string" ? args : (JSON.stringify(args) ?? "");
  return text === "{}" ? "" : truncate(text, PREVIEW_CHARACTERS);
};

/** Undefined: stopped before its result. */
const statusOf = ({ result }: ToolStep, isRunning: boolean): string | undefined => {
  if (result === undefined) return isRunning ? "running" : undefined;
  return typeof result.status === "string" ? truncate(result.status, CHARACTERS_OF_STATUS) : "success";
};

const StatusIcon = ({ status }: { status: string | undefined }) => {
  if (status === "running") return <Spinner />;
  if (status === "success") return <Check aria-hidden size={14} className={styles.good} />;
  if (status === undefined) return <CircleDashed aria-hidden size={14} />;
  return <X aria-hidden size={14} className={styles.bad} />;
};

/** Renders arguments and result only while it is open. */
const ToolStepView = ({ step, isRunning, duration, inside }: ToolStepProps) => {
  const { call, result } = step;
  const status = statusOf(step, isRunning);
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details
      className={styles.step}
      data-tool={call.name}
      onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}
    >
      <summary>
        <ChevronRight aria-hidden size={14} className={styles.arrow} />
        <StatusIcon status={status} />
        <span className={styles.tool}>{truncate(call.name, CHARACTERS_OF_TOOL)}</span>
        <code className={styles.preview}>{previewOf(call.args)}</code>
        {status !== undefined && (
          <span data-status={status} className={status === "success" ? "unseen" : undefined}>
            {status}
          </span>
        )}
        {duration !== undefined && <span>{durationText(duration)}</span>}
      </summary>
      {isOpen && (
        <div className={styles.open}>
          {step.message !== undefined && <Content content={step.message.content} isGrowing={false} />}
          <p className={styles.label}>Arguments</p>
          <JsonView value={call.args} />
          <p className={styles.label}>Result</p>
          {result === undefined ? <p className="faint">None yet.</p> : <ToolResult message={result} />}
          {inside?.()}
        </div>
      )}
    </details>
  );
};

export const stepsOf = (
  message: ShownMessage,
  more: readonly ShownMessage[],
  results: readonly ShownMessage[],
): ToolStep[] => {
  const answers = new Map(results.map((result) => [result.tool_call_id, result]));
  const resultOf = ({ id }: ToolCall) => (id === undefined ? undefined : answers.get(id));
  return [
    ...toolCallsOf(message).map((call) => ({ call, result: resultOf(call) })),
    ...more.flatMap((later) =>
      toolCallsOf(later).map((call) => ({ call, result: resultOf(call), message: later })),
    ),
  ];
};

const NAMES_SHOWN = 4;
/** More steps at a time would block the page. */
const STEPS_SHOWN = 50;

const namesOf = (steps: readonly ToolStep[]): string => {
  const names = [...new Set(steps.map(({ call }) => truncate(call.name, CHARACTERS_OF_TOOL)))];
  const shown = names.slice(0, NAMES_SHOWN).join(", ");
  return names.length > NAMES_SHOWN ? `${shown} and ${names.length - NAMES_SHOWN} more` : shown;
};

interface ToolStepsProps {
  steps: readonly ToolStep[];
  isRunning: boolean;
  durationOf?: DurationOf;
  inside?: (call: ToolCall, result: ShownMessage | undefined) => ReactNode;
}

/** Several steps fold into one line. */
export const ToolSteps = ({ steps, isRunning, durationOf, inside }: ToolStepsProps) => {
  const [isOpen, setIsOpen] = useState(false);
  const [shown, setShown] = useState(STEPS_SHOWN);
  const list = (some: readonly ToolStep[]) =>
    some.map((step, index) => (
      <ToolStepView
        key={`${step.call.id ?? ""} ${index}`}
        step={step}
        isRunning={isRunning}
        duration={durationOf?.(step.call.id)}
        inside={inside && (() => inside(step.call, step.result))}
      />
    ));
  if (steps.length < 2) return list(steps);
  const statuses = steps.map((step) => statusOf(step, isRunning));
  const current = steps[statuses.indexOf("running")];
  const failed = statuses.filter((one) => one !== undefined && one !== "success" && one !== "running").length;
  const total = steps.reduce((sum, { call }) => sum + (durationOf?.(call.id) ?? 0), 0);
  const status = current !== undefined ? "running" : failed > 0 ? "error" : statuses.at(-1);
  return (
    <details
      className={styles.steps}
      data-steps={steps.length}
      onToggle={({ currentTarget, target }) => target === currentTarget && setIsOpen(currentTarget.open)}
    >
      <summary>
        <ChevronRight aria-hidden size={14} className={styles.arrow} />
        <StatusIcon status={status} />
        <span>
          {current === undefined
            ? `${steps.length} steps: ${namesOf(steps)}`
            : `Step ${steps.length}: ${truncate(current.call.name, CHARACTERS_OF_TOOL)}`}
          {failed > 0 && ` · ${failed} failed`}
          {total > 0 && current === undefined && ` · ${durationText(total)}`}
        </span>
      </summary>
      {isOpen && (
        <div className={styles.list}>
          {list(steps.slice(0, shown))}
          {steps.length > shown && (
            <button type="button" className="plain small" onClick={() => setShown(shown + STEPS_SHOWN)}>
              {steps.length - shown} more
            </button>
          )}
        </div>
      )}
    </details>
  );
};

/** Most tools return text, some return JSON. */
export const ToolResult = ({ message: { content, artifact } }: { message: ShownMessage }) => {
  const json = typeof content === "string" ? parsed(content) : undefined;
  return (
    <>
      {json === undefined ? <Content content={content} isGrowing={false} /> : <JsonView value={json} />}
      {artifact != null && (
        <>
          <p className={styles.label}>Artifact</p>
          <JsonView value={artifact} />
        </>
      )}
    </>
  );
};

const JSON_CHARACTERS_AT_MOST = 1_000_000;

const parsed = (text: string): object | undefined => {
  if (!/^\s*[[{]/.test(text) || text.length > JSON_CHARACTERS_AT_MOST) return undefined;
  try {
    return JSON.parse(text) as object;
  } catch {
    return undefined;
  }
};
