import { useMemo, type ReactNode } from "react";
import { truncate } from "../../design/truncate.ts";
import { Fields } from "../fields.tsx";
import { JsonView } from "../json.tsx";
import { Status } from "../status.tsx";
import { durationText } from "../time.tsx";
import { Failure } from "./failure.tsx";
import { endOf } from "./spans.ts";
import { KindIcon } from "./span-icons.tsx";
import { costText, type ModelUsage, type Span } from "./trace.ts";
import { useCurrency } from "./use-trace.ts";
import styles from "./timeline.module.css";

const number = new Intl.NumberFormat("en");
const counted = (tokens: number | undefined): string | undefined =>
  tokens === undefined || tokens === 0 ? undefined : number.format(tokens);

const shareText = (share: number): string =>
  share > 0 && share < 0.01 ? "under 1%" : `${Math.round(Math.min(share, 1) * 100)}%`;

const KIND_WORDS = { node: "Node", model: "Model call", tool: "Tool call" };
const CHARACTERS_OF_NAME = 300;

const asJson = (text: string): { json: unknown } | undefined => {
  try {
    const json: unknown = JSON.parse(text);
    return typeof json === "object" && json !== null ? { json } : undefined;
  } catch {
    return undefined;
  }
};

const Value = ({ name, children }: { name: string; children: ReactNode }) => (
  <section className={styles.value} aria-label={name}>
    <h3>{name}</h3>
    {children}
  </section>
);

const StoredText = ({ name, text }: { name: string; text: string }) => {
  const parsed = useMemo(() => asJson(text), [text]);
  return (
    <Value name={name}>
      {parsed === undefined ? (
        <pre tabIndex={0}>{text === "" ? "(empty)" : text}</pre>
      ) : (
        <div tabIndex={0} role="group" aria-label={`${name} as JSON`}>
          <JsonView value={parsed.json} depth={2} />
        </div>
      )}
    </Value>
  );
};

/** The price of one call is known if the model was called once. */
const costOf = ({ model }: Span, usage: readonly ModelUsage[]): number | null => {
  const used = usage.find((each) => each.model === model);
  return used?.calls === 1 ? used.cost : null;
};

interface SpanDetailsProps {
  span: Span;
  totalMs: number;
  usage: readonly ModelUsage[];
  /** Below the stored values, e.g. what a node wrote. */
  children?: ReactNode;
}

export const SpanDetails = ({ span, totalMs, usage, children }: SpanDetailsProps) => {
  const end = endOf(span, totalMs);
  const took = end === undefined ? undefined : Math.max(0, end - span.start_ms);
  const cost = costOf(span, usage);
  const currency = useCurrency(cost !== null);
  const { usage: tokens, first_token_ms: first } = span;
  return (
    <div className={styles.details}>
      <div className={styles.title}>
        <KindIcon kind={span.kind} />
        <h2>{truncate(span.name, CHARACTERS_OF_NAME)}</h2>
        <Status status={span.status} />
      </div>
      <Fields
        fields={[
          ["Kind", KIND_WORDS[span.kind]],
          ["Started after", durationText(span.start_ms)],
          ["Duration", took === undefined ? "not known" : durationText(took)],
          [
            "Share of the attempt",
            took === undefined || totalMs <= 0 ? undefined : shareText(took / totalMs),
          ],
          ["Model", span.model],
          ["Provider", span.provider],
          [
            "First token after",
            first === undefined ? undefined : durationText(Math.max(0, first - span.start_ms)),
          ],
          ["Tokens in", tokens && number.format(tokens.input_tokens)],
          ["Cached", counted(tokens?.cache_read_tokens)],
          ["Tokens out", tokens && number.format(tokens.output_tokens)],
          ["Reasoning", counted(tokens?.reasoning_tokens)],
          ["Cost", cost === null ? undefined : costText(cost, currency)],
          ["Stop reason", span.stop_reason],
          ["Tool call", span.tool_call_id && <code>{span.tool_call_id}</code>],
        ]}
      />
      {span.error !== undefined && <Failure error={span.error} />}
      {span.arguments !== undefined && <StoredText name="Arguments" text={span.arguments} />}
      {span.result !== undefined && <StoredText name="Result" text={span.result} />}
      {children}
    </div>
  );
};
