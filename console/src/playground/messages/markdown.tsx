import { Component, isValidElement, lazy, memo, Suspense, type ReactNode } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import { LongText } from "../../parts/long-text.tsx";
import { CodeBlock } from "./code-block.tsx";
import { partsOf, type TextPart } from "./markdown-parts.ts";
import { mathIn } from "./math-text.ts";
import styles from "./markdown.module.css";

/** A longer text is data: its beginning is shown as plain text. */
const CHARACTERS_AT_MOST = 50_000;
const CHARACTERS_SHOWN = 10_000;

const PLUGINS = [remarkGfm];

/** Addresses that a link may open: no scripts and nothing within the page. */
const isOutside = (address: string | undefined): address is string =>
  address !== undefined && /^(https?:|mailto:)/i.test(address);

const Heading = ({ children }: { children?: ReactNode }) => <p className={styles.heading}>{children}</p>;

const textIn = (node: ReactNode): string =>
  typeof node === "string" ? node : Array.isArray(node) ? node.map(textIn).join("") : "";

/** Within a list or a quotation. */
const InnerCode = ({ children }: { children?: ReactNode }) => {
  const code = isValidElement<{ className?: string; children?: ReactNode }>(children) ? children.props : {};
  const language = /language-(\S+)/.exec(code.className ?? "")?.[1];
  return <CodeBlock text={textIn(code.children).replace(/\n$/, "")} language={language} />;
};

const GrowingCode = ({ children }: { children?: ReactNode }) => (
  <pre className={styles.wide} tabIndex={0} role="group" aria-label="Code">
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
    <div className={styles.wide} tabIndex={0} role="group" aria-label="Table">
      <table>{children}</table>
    </div>
  ),
  pre: InnerCode,
  // Headings of a message would break the order of the page's headings for screen readers.
  h1: Heading,
  h2: Heading,
  h3: Heading,
  h4: Heading,
  h5: Heading,
  h6: Heading,
  input: ({ checked }) => <span>{checked === true ? "☑" : "☐"} </span>,
};

/** Code is coloured once it has ended. */
const GROWING: Components = { ...COMPONENTS, pre: GrowingCode };

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

interface FormattedProps {
  text: string;
  isGrowing: boolean;
}

const WithoutMath = ({ text, isGrowing }: FormattedProps) => (
  <ReactMarkdown remarkPlugins={PLUGINS} components={isGrowing ? GROWING : COMPONENTS}>
    {text}
  </ReactMarkdown>
);

/** Loaded on demand, because few messages have formulas. */
const WithMath = lazy(async () => {
  const { REMARK_MATH, REHYPE_MATH } = await import("./math-plugins.ts");
  const remark = [...PLUGINS, ...(REMARK_MATH ?? [])];
  return {
    default: ({ text, isGrowing }: FormattedProps) => (
      <ReactMarkdown
        remarkPlugins={remark}
        rehypePlugins={REHYPE_MATH}
        components={isGrowing ? GROWING : COMPONENTS}
      >
        {text}
      </ReactMarkdown>
    ),
  };
});

const Formatted = memo(({ text, isGrowing }: FormattedProps) => {
  const math = mathIn(text);
  const plain = <WithoutMath text={text} isGrowing={isGrowing} />;
  return (
    <MarkdownBoundary text={text}>
      {math === undefined ? (
        plain
      ) : (
        <Suspense fallback={plain}>
          <WithMath text={math} isGrowing={isGrowing} />
        </Suspense>
      )}
    </MarkdownBoundary>
  );
});
Formatted.displayName = "Formatted";

export const PlainText = ({ text }: { text: string }) => (
  <LongText text={text} characters={CHARACTERS_SHOWN}>
    {(shown) => <p className={styles.plain}>{shown}</p>}
  </LongText>
);

const Part = memo(
  ({ text, kind, language, isOpen = false, isGrowing }: TextPart & { isGrowing: boolean }) => {
    if (kind === "formatted") return <Formatted text={text} isGrowing={isGrowing} />;
    return kind === "code" ? (
      <CodeBlock text={text} language={language} isGrowing={isGrowing && isOpen} />
    ) : (
      <p className={styles.plain}>{text}</p>
    );
  },
);
Part.displayName = "Part";

/** Formats a text without HTML. Finished parts of a growing text are not parsed again. */
export const Markdown = memo(({ text, isGrowing = false }: { text: string; isGrowing?: boolean }) =>
  text.length > CHARACTERS_AT_MOST ? (
    <PlainText text={text} />
  ) : (
    <div className={styles.markdown}>
      {partsOf(text, isGrowing).map((part, index, { length }) => (
        <Part key={index} {...part} isGrowing={isGrowing && index === length - 1} />
      ))}
    </div>
  ),
);
Markdown.displayName = "Markdown";
