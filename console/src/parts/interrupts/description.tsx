import { Component, memo, type ReactNode } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { LongText } from "../long-text.tsx";
import styles from "./interrupts.module.css";

/** A longer text is data. */
const CHARACTERS_AT_MOST = 20_000;
const CHARACTERS_SHOWN = 4_000;

const PLUGINS = [remarkGfm];

const Outside = ({ address, children }: { address: unknown; children?: ReactNode }) =>
  typeof address === "string" && /^(https?:|mailto:)/i.test(address) ? (
    <a href={address} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  ) : (
    <span>{children}</span>
  );

const Heading = ({ children }: { children?: ReactNode }) => (
  <p>
    <strong>{children}</strong>
  </p>
);

const COMPONENTS: Components = {
  a: ({ href, children }) => <Outside address={href}>{children}</Outside>,
  // A remote image would report to its server that the question is read.
  img: ({ src, alt }) => <Outside address={src}>Image: {alt || String(src)}</Outside>,
  table: ({ children }) => (
    <div className={styles.wide} tabIndex={0} role="region" aria-label="Table of the description">
      <table>{children}</table>
    </div>
  ),
  pre: ({ children }) => (
    <pre className={styles.wide} tabIndex={0} role="region" aria-label="Code of the description">
      {children}
    </pre>
  ),
  // Headings of a description would break the order of the page's headings.
  h1: Heading,
  h2: Heading,
  h3: Heading,
  h4: Heading,
  h5: Heading,
  h6: Heading,
  input: ({ checked }) => <span>{checked === true ? "☑" : "☐"} </span>,
};

const PlainText = ({ text }: { text: string }) => (
  <LongText text={text} characters={CHARACTERS_SHOWN}>
    {(shown) => <p className={styles.plain}>{shown}</p>}
  </LongText>
);

/** The parser fails on thousands of nested quotations; the text is then shown as it is. */
class MarkdownBoundary extends Component<{ text: string; children: ReactNode }, { hasFailed: boolean }> {
  override state = { hasFailed: false };
  static getDerivedStateFromError = () => ({ hasFailed: true });
  override render() {
    return this.state.hasFailed ? <PlainText text={this.props.text} /> : this.props.children;
  }
}

/** Markdown without HTML. */
export const Description = memo(({ text }: { text: string }) =>
  text.length > CHARACTERS_AT_MOST ? (
    <PlainText text={text} />
  ) : (
    <div className={styles.description}>
      <MarkdownBoundary text={text}>
        <ReactMarkdown remarkPlugins={PLUGINS} components={COMPONENTS}>
          {text}
        </ReactMarkdown>
      </MarkdownBoundary>
    </div>
  ),
);
Description.displayName = "Description";
