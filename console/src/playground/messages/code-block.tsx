import { Component, lazy, Suspense, type ReactNode } from "react";
import { CopyButton } from "./copy-button.tsx";
import styles from "./markdown.module.css";

/** Loaded on demand, because the grammars are large. */
const Highlighted = lazy(() => import("./highlighted-code.tsx"));

/** A longer text would block the page. */
const HIGHLIGHTED_AT_MOST = 20_000;

/** Without colours if their file can't be loaded. */
class PlainBoundary extends Component<{ plain: ReactNode; children: ReactNode }, { hasFailed: boolean }> {
  override state = { hasFailed: false };

  static getDerivedStateFromError() {
    return { hasFailed: true };
  }

  override render() {
    return this.state.hasFailed ? this.props.plain : this.props.children;
  }
}

interface CodeBlockProps {
  text: string;
  language: string | undefined;
  /** Colours arrive with the end of the block. */
  isGrowing?: boolean;
}

export const CodeBlock = ({ text, language, isGrowing = false }: CodeBlockProps) => {
  const plain = <code>{text}</code>;
  const isHighlighted = !isGrowing && language !== undefined && text.length <= HIGHLIGHTED_AT_MOST;
  return (
    <div className={styles.block}>
      <div className={styles.blockHead}>
        <span>{language ?? "text"}</span>
        <CopyButton text={text} label="Copy code" />
      </div>
      {/* A group, because landmarks need names of their own. */}
      <pre className={styles.wide} tabIndex={0} role="group" aria-label="Code">
        {isHighlighted ? (
          <PlainBoundary plain={plain}>
            <Suspense fallback={plain}>
              <Highlighted text={text} language={language} />
            </Suspense>
          </PlainBoundary>
        ) : (
          plain
        )}
      </pre>
    </div>
  );
};
