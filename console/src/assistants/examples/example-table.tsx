import { Ellipsis, Pencil, Star, Trash2 } from "lucide-react";
import { memo } from "react";
import { IconButton } from "../../design/icon-button.tsx";
import { Menu } from "../../design/menu.tsx";
import { truncate } from "../../design/truncate.ts";
import { LongText } from "../../parts/long-text.tsx";
import { MarkedText } from "../../parts/marked-text.tsx";
import { Table } from "../../parts/table.tsx";
import type { Trial } from "../trial/run-version.ts";
import { TrialFigures } from "../trial/trial-figures.tsx";
import { inputLine } from "../trial/written.ts";
import type { Example } from "./queries.ts";
import styles from "./examples.module.css";

const CHARACTERS_SHOWN = 400;
const COMPARED_CHARACTERS = 4_000;

const Text = ({ text }: { text: string }) => (
  <div className={styles.text}>
    <LongText text={text} characters={CHARACTERS_SHOWN}>
      {(shown) => shown}
    </LongText>
  </div>
);

interface AnswerProps {
  trial: Trial | undefined;
  /** The expected answer, or the answer of the other version. */
  against: { name: string; text: string } | undefined;
}

/** Compares texts only once, because a table may have hundreds of answers. */
const Answer = memo(
  ({ trial, against }: AnswerProps) => {
    if (trial === undefined) return <span className="faint">–</span>;
    const isCompared = trial.status === "success" && against !== undefined;
    const isSame = isCompared && trial.answer.trim() === against.text.trim();
    return (
      <div className={styles.answer}>
        <TrialFigures trial={trial} />
        {isCompared && (
          <p className={isSame ? styles.same : styles.changed}>
            {isSame ? `Same as ${against.name}` : `Differs from ${against.name}`}
          </p>
        )}
        {trial.error !== undefined && <p className={styles.error}>{trial.error || "No message."}</p>}
        {isCompared && !isSame ? (
          <MarkedText
            before={against.text.slice(0, COMPARED_CHARACTERS)}
            after={trial.answer.slice(0, COMPARED_CHARACTERS)}
          />
        ) : (
          <Text text={trial.answer} />
        )}
      </div>
    );
  },
  (before, after) =>
    before.trial === after.trial &&
    before.against?.text === after.against?.text &&
    before.against?.name === after.against?.name,
);

const ACTIONS = (
  <span key="actions" className="unseen">
    Actions
  </span>
);

interface ExampleTableProps {
  examples: readonly Example[];
  /** The columns of answers. */
  versions: readonly number[];
  trials: ReadonlyMap<string, readonly (Trial | undefined)[]>;
  onEdit(example: Example): void;
  onDelete(example: Example): void;
  onExpect(example: Example, answer: string): void;
}

/** The expected answer, else the answer of the first version. */
const againstOf = (
  { expected }: Example,
  trials: readonly (Trial | undefined)[],
  index: number,
  versions: readonly number[],
): AnswerProps["against"] => {
  if (expected !== undefined) return { name: "the expected answer", text: expected };
  const first = trials[0];
  return index > 0 && first?.status === "success"
    ? { name: `version ${versions[0]}`, text: first.answer }
    : undefined;
};

export const ExampleTable = (props: ExampleTableProps) => {
  const { examples, versions, trials, onEdit, onDelete, onExpect } = props;
  const answers = versions.map((version) => `Version ${version}`);
  return (
    <Table label="Table of examples" columns={["Example", "Expected", ...answers, ACTIONS]}>
      {examples.map((example) => {
        const own = trials.get(example.id) ?? [];
        const title = truncate(example.name || inputLine(example.input));
        return (
          <tr key={example.id}>
            <td className={styles.cell}>
              {example.name !== "" && <strong>{truncate(example.name)}</strong>}
              <div className={example.name === "" ? undefined : "faint"}>{inputLine(example.input)}</div>
            </td>
            <td className={styles.cell}>
              {example.expected === undefined ? (
                <span className="faint">–</span>
              ) : (
                <Text text={example.expected} />
              )}
            </td>
            {versions.map((version, index) => (
              <td key={index} className={styles.cell} data-version={version}>
                <Answer trial={own[index]} against={againstOf(example, own, index, versions)} />
              </td>
            ))}
            <td className={styles.actions}>
              <Menu
                trigger={
                  <IconButton label={`Actions of the example ${title}`} icon={Ellipsis} size="small" />
                }
                items={[
                  { label: "Edit", icon: Pencil, onSelect: () => onEdit(example) },
                  ...own.flatMap((trial, index) =>
                    trial?.status === "success"
                      ? [
                          {
                            label: `Expect the answer of version ${versions[index]}`,
                            icon: Star,
                            onSelect: () => onExpect(example, trial.answer),
                          },
                        ]
                      : [],
                  ),
                  { label: "Delete", icon: Trash2, isDanger: true, onSelect: () => onDelete(example) },
                ]}
              />
            </td>
          </tr>
        );
      })}
    </Table>
  );
};
