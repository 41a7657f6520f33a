import { Component, memo, useState, type ReactNode } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import remarkGfm from "remark-gfm";
import styles from "./message.module.css";

/** Longer texts are data: they are shown as they are, and only their beginning. */
const CHARACTERS_AT_MOST = 50_000;
const CHARACTERS_SHOWN = 10_000;

const PLUGINS = [remarkGfm];

/** The addresses that a click may open: nothing within the page, nothing that runs. */
const isOutside = (address: string | undefined): address is string =>
  address !== undefined && /^(https?:|mailto:)/i.test(address);

const Heading = ({ children }: { children?: ReactNode }) => <p className={styles.heading}>{children}</p>;

const COMPONENTS: Components = {
  a: ({ href, children }) =>
    isOutside(href) ? (
      <a href={href} target="_blank" rel="noopener noreferrer">
        {children}
      </a>
    ) : (
      <span>{children}</span>
    ),
  // Never loaded: whoever wrote the text would learn that it is read.
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
  pre: ({ children }) => (
    <pre className={styles.wide} tabIndex={0} role="region" aria-label="Code">
      {children}
    </pre>
  ),
  // No headings of the page: a message may begin with any of them, and what reads the page aloud goes by their order.
  h1: Heading,
  h2: Heading,
  h3: Heading,
  h4: Heading,
  h5: Heading,
  h6: Heading,
  input: ({ checked }) => <span>{checked === true ? "☑" : "☐"} </span>,
};

/** A text whose quotations or brackets are nested by the thousand is too deep for what reads it: it is shown as it was written. */
class AsWritten extends Component<{ text: string; children: ReactNode }, { hasFailed: boolean }> {
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
  <AsWritten text={text}>
    <ReactMarkdown remarkPlugins={PLUGINS} components={COMPONENTS}>
      {text}
    </ReactMarkdown>
  </AsWritten>
));
Formatted.displayName = "Formatted";

const FENCE = /^ {0,3}(```|~~~)/;

/** A line that goes on a list, a table or a quotation would be taken from it. */
const BEGINS_ANEW = /^[^\s\-*+\d|>]/;

/** The parts of a growing text: only the last one may still change. They end at empty lines that stand in no block of code. */
const partsOf = (text: string): string[] => {
  const parts: string[] = [];
  let isInCode = false;
  let begun = 0;
  let place = 0;
  for (const line of text.split("\n")) {
    const next = place + line.length + 1;
    if (FENCE.test(line)) isInCode = !isInCode;
    if (!isInCode && line.trim() === "" && next < text.length && BEGINS_ANEW.test(text.charAt(next))) {
      parts.push(text.slice(begun, next));
      begun = next;
    }
    place = next;
  }
  parts.push(text.slice(begun));
  return parts;
};

const LongText = ({ text }: { text: string }) => {
  const [isWhole, setIsWhole] = useState(false);
  return (
    <>
      <p className={styles.plain}>{isWhole ? text : `${text.slice(0, CHARACTERS_SHOWN)}…`}</p>
      {!isWhole && (
        <button type="button" onClick={() => setIsWhole(true)}>
          All {text.length.toLocaleString("en")} characters
        </button>
      )}
    </>
  );
};

/** Fifty lists or quotations within one another: what reads Markdown takes seconds for a thousand, and minutes for more. */
const NESTED_DEEPLY = /^(?:[ \t]*(?:>|[*+-][ \t]|\d{1,9}[.)][ \t])){50}/m;
/** The time for those of one paragraph grows with the square of their number. */
const MARKS_AT_MOST = 5_000;

const isTooMuch = (text: string): boolean =>
  NESTED_DEEPLY.test(text) || (text.match(/[*_~[\]]/g)?.length ?? 0) > MARKS_AT_MOST;

/** A text of a graph, formatted; none of it is HTML. What is finished of a growing text is not read again with each token. */
export const Markdown = ({ text, isGrowing = false }: { text: string; isGrowing?: boolean }) => {
  if (text.length > CHARACTERS_AT_MOST) return <LongText text={text} />;
  if (isTooMuch(text)) return <p className={styles.plain}>{text}</p>;
  return (
    <div className={styles.markdown}>
      {isGrowing ? (
        partsOf(text).map((part, index) => <Formatted key={index} text={part} />)
      ) : (
        <Formatted text={text} />
      )}
    </div>
  );
};
