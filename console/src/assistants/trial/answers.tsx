import { useState } from "react";
import { MarkedText } from "../../parts/marked-text.tsx";
import { LongText } from "../../parts/long-text.tsx";
import { ErrorNotice } from "../../parts/notice.tsx";
import { TrialFigures } from "./trial-figures.tsx";
import type { TrialSide } from "./use-trial.ts";
import styles from "./trial.module.css";

const CHARACTERS_SHOWN = 4_000;

const isAnswered = ({ trial: { status } }: TrialSide): boolean =>
  status === "success" || status === "interrupted";

interface SideProps {
  side: TrialSide;
  label: string;
  /** The left and the right answer; undefined: no difference is marked. */
  marked: { before: string; after: string; side: "before" | "after" } | undefined;
}

const Side = ({ side: { trial, version }, label, marked }: SideProps) => {
  return (
    <section className={styles.side} aria-label={label}>
      <div className={styles.head}>
        <h2>Version {version.version}</h2>
        <TrialFigures trial={trial} />
      </div>
      {trial.status === "interrupted" && <p className="faint">The graph asks:</p>}
      {trial.status === "stopped" && <p className="faint">You stopped this run.</p>}
      {trial.error !== undefined && (
        <ErrorNotice error={trial.error || "The run failed without a message."} />
      )}
      {marked !== undefined ? (
        <MarkedText {...marked} />
      ) : (
        <p className={styles.answer}>
          <LongText text={trial.answer} characters={CHARACTERS_SHOWN}>
            {(text) => text}
          </LongText>
        </p>
      )}
      {trial.status === "success" && trial.answer === "" && <p className="faint">The answer is empty.</p>}
    </section>
  );
};

export const Answers = ({ sides }: { sides: readonly TrialSide[] }) => {
  const [isMarked, setIsMarked] = useState(true);
  const [left, right] = sides;
  const isCompared = left !== undefined && right !== undefined && isAnswered(left) && isAnswered(right);
  const isSame = isCompared && left.trial.answer.trim() === right.trial.answer.trim();
  return (
    <>
      {isCompared && (
        <div className="row">
          <p role="status">{isSame ? "The two answers are equal." : "The two answers differ."}</p>
          {!isSame && (
            <label className="row">
              <input
                type="checkbox"
                checked={isMarked}
                onChange={({ target }) => setIsMarked(target.checked)}
              />
              Mark differences
            </label>
          )}
        </div>
      )}
      <div className={styles.sides}>
        {sides.map((side, index) => (
          <Side
            key={index}
            side={side}
            marked={
              isCompared && !isSame && isMarked
                ? {
                    ...{ before: left.trial.answer, after: right.trial.answer },
                    side: index === 0 ? "before" : "after",
                  }
                : undefined
            }
            label={sides.length === 1 ? "Answer" : index === 0 ? "Left answer" : "Right answer"}
          />
        ))}
      </div>
    </>
  );
};
