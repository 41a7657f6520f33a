import { Component, memo, type ReactNode } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { LongText } from "../parts/long-text.tsx";
import { partsOf, type TextPart } from "./markdown-parts.ts";
import styles from "./message.module.css";

/** A longer text is data: its beginning is shown as plain text. */
const CHARACTERS_AT_MOST = 50_000;
const CHARACTERS_SHOWN = 10_000;

const PLUGINS = [remarkGfm];

/** Addresses that a link may open: no scripts and nothing within the page. */
const isOutside = (address: string | undefined): address is string =>
  address !== undefined && /^(https?:|mailto:)/i.test(address);

const Heading = ({ children }: { children?: ReactNode }) => <p className={styles.heading}>{children}</p>;

const Code = ({ children }: { children?: ReactNode }) => (
  <pre className={styles.wide} tabIndex={0} role="region" aria-label="Code">
    {children}
  </pre>
);

const COMPONENTS: Components = {
  a: ({ href, children }) =>
    isOutside(href) ? (
      <a href={href} target="_blank" rel="noopener noreferrer">
        {children}
      </a>
    ) : (
      <span>{children}</span>
    ),
  // A remote image would report to its server that the message is read.
  img: ({ src, alt }) =>
    typeof src === "string" && isOutside(src) ? (
      <a href={src} target="_blank" rel="noopener noreferrer">
        Image: {alt === undefined || alt === "" ? src : alt}
      </a>
    ) : (
      <span className="faint">Image: {alt}</span>
    ),
  table: ({ children }) => (
    <div className={styles.wide} tabIndex={0} role="region" aria-label="Table">
      <table>{children}</table>
    </div>
  ),
  pre: ({ children }) => <Code>{children}</Code>,
  // Headings of a message would break the order of the page's headings for screen readers.
  h1: Heading,
  h2: Heading,
  h3: Heading,
  h4: Heading,
  h5: Heading,
  h6: Heading,
  input: ({ checked }) => <span>{checked === true ? "☑" : "☐"} </span>,
};

/** The parser fails on thousands of nested quotations or brackets; the text is then shown as it is. */
class MarkdownBoundary extends Component<{ text: string; children: ReactNode }, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override render() {
    const { text, children } = this.props;
    return this.state.hasFailed ? <p className={styles.plain}>{text}</p> : children;
  }
}

const Formatted = memo(({ text }: { text: string }) => (
  <MarkdownBoundary text={text}>
    <ReactMarkdown remarkPlugins={PLUGINS} components={COMPONENTS}>
      {text}
    </ReactMarkdown>
  </MarkdownBoundary>
));
Formatted.displayName = "Formatted";

export const PlainText = ({ text }: { text: string }) => (
  <LongText text={text} characters={CHARACTERS_SHOWN}>
    {(shown) => <p className={styles.plain}>{shown}</p>}
  </LongText>
);

const Part = ({ text, kind }: TextPart) => {
  if (kind === "formatted") return <Formatted text={text} />;
  return kind === "code" ? (
    <Code>
      <code>{text}</code>
    </Code>
  ) : (
    <p className={styles.plain}>{text}</p>
  );
};

/** Formats a text without HTML. Finished parts of a growing text are not parsed again. */
export const Markdown = memo(({ text, isGrowing = false }: { text: string; isGrowing?: boolean }) =>
  text.length > CHARACTERS_AT_MOST ? (
    <PlainText text={text} />
  ) : (
    <div className={styles.markdown}>
      {partsOf(text, isGrowing).map((part, index) => (
        <Part key={index} {...part} />
      ))}
    </div>
  ),
);
Markdown.displayName = "Markdown";
