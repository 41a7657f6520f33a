import { useState, type ReactNode } from "react";
import { JsonView } from "../parts/json.tsx";
import { Status } from "../parts/status.tsx";
import { Content } from "./content.tsx";
import { toolCallsOf, type ShownMessage, type ToolCall } from "./messages.ts";
import styles from "./message.module.css";

interface ToolCallViewProps {
  call: ToolCall;
  result: ShownMessage | undefined;
  /** Whether a result may still arrive. */
  isRunning: boolean;
  /** Rendered below the result when the user opens the call. */
  inside?: (() => ReactNode) | undefined;
}

const PREVIEW_CHARACTERS = 80;

const previewOf = (args: unknown): string => {
  const text = typeof args === "string" ? args : (JSON.stringify(args) ?? "");
  return text.length > PREVIEW_CHARACTERS ? `${text.slice(0, PREVIEW_CHARACTERS)}…` : text;
};

/** Renders arguments and result only while it is open. */
export const ToolCallView = ({ call: { name, args }, result, isRunning, inside }: ToolCallViewProps) => {
  const reported = typeof result?.status === "string" ? result.status : "success";
  const status = result === undefined ? (isRunning ? "running" : undefined) : reported;
  const [isOpen, setIsOpen] = useState(false);
  return (
    <details
      className={styles.tool}
      data-tool={name}
      onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}
    >
      <summary>
        <strong>{name}</strong> <code className="faint">{previewOf(args)}</code>{" "}
        {status !== undefined && <Status status={status} />}
      </summary>
      {isOpen && (
        <>
          <p className="faint">Arguments</p>
          <JsonView value={args} />
          <p className="faint">Result</p>
          {result === undefined ? <p className="faint">None yet.</p> : <ToolResult message={result} />}
          {inside?.()}
        </>
      )}
    </details>
  );
};

interface ToolCallsProps {
  message: ShownMessage;
  results: readonly ShownMessage[];
  isRunning: boolean;
  inside?: (call: ToolCall, result: ShownMessage | undefined) => ReactNode;
}

export const ToolCalls = ({ message, results, isRunning, inside }: ToolCallsProps) =>
  toolCallsOf(message).map((call, index) => {
    const result = results.find(({ tool_call_id }) => tool_call_id === call.id);
    return (
      <ToolCallView
        key={call.id ?? index}
        call={call}
        result={result}
        isRunning={isRunning}
        inside={inside && (() => inside(call, result))}
      />
    );
  });

/** Most tools return text, some return JSON. */
export const ToolResult = ({ message: { content, artifact } }: { message: ShownMessage }) => {
  const json = typeof content === "string" ? parsed(content) : undefined;
  return (
    <>
      {json === undefined ? <Content content={content} isGrowing={false} /> : <JsonView value={json} />}
      {artifact != null && (
        <>
          <p className="faint">Artifact</p>
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
