import { lazy, Suspense, useId, useRef, useState, type KeyboardEvent } from "react";
import type { SchemaFormProps, Validity } from "./schema-form.tsx";
import styles from "./value-editor.module.css";

export type { Validity };

/** Loaded on demand, because the form is larger than most pages. */
const SchemaForm = lazy(async () => ({ default: (await import("./schema-form.tsx")).SchemaForm }));
const CheckedJson = lazy(async () => ({ default: (await import("./schema-form.tsx")).CheckedJson }));

const VIEWS = ["Form", "JSON"] as const;
type View = (typeof VIEWS)[number];

export const UNTOUCHED: Validity = { valid: true, errors: [], isJson: true };

/** Change `key` to set another value or schema. */
export const ValueEditor = (props: SchemaFormProps) => {
  const [view, setView] = useState<View>("Form");
  const [isSwitched, setIsSwitched] = useState(false);
  const tabs = useRef(new Map<View, HTMLButtonElement>());
  const id = useId();
  const choose = (next: View): void => {
    setView(next);
    if (next !== view) setIsSwitched(true);
    tabs.current.get(next)?.focus();
  };
  const onKeyDown = ({ key }: KeyboardEvent): void => {
    if (key === "ArrowLeft" || key === "ArrowRight") choose(view === "Form" ? "JSON" : "Form");
  };
  return (
    <div className="stack">
      <div role="tablist" aria-label={`${props.label}: format`} className={styles.tabs} onKeyDown={onKeyDown}>
        {VIEWS.map((each) => (
          <button
            key={each}
            ref={(element) => {
              if (element !== null) tabs.current.set(each, element);
            }}
            type="button"
            role="tab"
            id={`${id}${each}`}
            aria-selected={view === each}
            aria-controls={`${id}panel`}
            tabIndex={view === each ? 0 : -1}
            onClick={() => choose(each)}
          >
            {each}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}panel`} aria-labelledby={`${id}${view}`}>
        <Suspense fallback={<p className="faint">Loading…</p>}>
          {view === "Form" ? (
            <SchemaForm {...props} reportsAtOnce={isSwitched} />
          ) : (
            <CheckedJson {...props} reportsAtOnce={isSwitched} />
          )}
        </Suspense>
      </div>
    </div>
  );
};
