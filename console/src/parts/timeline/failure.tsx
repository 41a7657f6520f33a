import type { ReactNode } from "react";
import { LongText } from "../long-text.tsx";
import type { Span } from "./trace.ts";
import styles from "./failure.module.css";

const CHARACTERS_SHOWN = 2_000;

interface FailureProps {
  error: NonNullable<Span["error"]>;
  /** Where it happened, in words. */
  children?: ReactNode;
}

/** An error with its place in the project's code. */
export const Failure = ({ error: { type, message, at }, children }: FailureProps) => (
  <section className={styles.failure} aria-label="Error">
    <h3>{type}</h3>
    {children}
    <pre tabIndex={0}>
      <LongText text={message} characters={CHARACTERS_SHOWN}>
        {(shown) => shown}
      </LongText>
    </pre>
    {at !== undefined && (
      <p>
        at <code>{at}</code>
      </p>
    )}
  </section>
);
