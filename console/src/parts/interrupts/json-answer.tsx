import { truncate } from "../../design/truncate.ts";
import { JsonEditor } from "../json.tsx";

export type WrittenJson = { json: unknown } | undefined;

const WORDS_CHARACTERS = 60;

/** An answer as the person reads it. */
export const wordsOf = (answer: unknown): string =>
  truncate(typeof answer === "string" ? `“${answer}”` : (JSON.stringify(answer) ?? ""), WORDS_CHARACTERS);

/** Starts empty, because a prefilled answer could be sent by accident. */
export const JsonAnswer = ({ onChange }: { onChange(written: WrittenJson): void }) => (
  <div data-part="answer">
    <JsonEditor label="Answer as JSON" initial={undefined} rows={3} onChange={onChange} />
  </div>
);
