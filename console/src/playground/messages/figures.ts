import { useQuery } from "@tanstack/react-query";
import { isObject } from "../../parts/is-object.ts";
import { tokensOf } from "../../parts/message-text.ts";
import { durationOf, type Run } from "../../parts/run.ts";
import { truncate } from "../../design/truncate.ts";
import { useConnection } from "../../server/connection.tsx";
import { pathTo, type CheckpointTree } from "./checkpoint-tree.ts";
import { typeOf, type Row, type ShownMessage } from "./messages.ts";

/** Answers of older runs show no time. */
const RUNS_AT_MOST = 500;
const FIELDS = ["run_id", "status", "run_started_at", "run_ended_at"];

export const NO_RUNS: ReadonlyMap<string, string> = new Map();

/** The newest run of each stretch of the path that began with an input. */
const runsOn = (tree: CheckpointTree, shownId: string | undefined): (string | undefined)[] => {
  const runs: (string | undefined)[] = [];
  for (const { source, runId } of pathTo(tree, shownId)) {
    if (source === "input") runs.push(runId);
    else if (source !== "update" && runId !== undefined && runs.length > 0) runs[runs.length - 1] = runId;
  }
  return runs;
};

/** The id of the last answer to each message of a person. */
const answersIn = (messages: readonly ShownMessage[]): (string | undefined)[] => {
  const answers: (string | undefined)[] = [];
  let before = "";
  for (const message of messages) {
    const type = typeOf(message);
    if (type === "human" && before !== "human") answers.push(undefined);
    if (type === "ai" && answers.length > 0) answers[answers.length - 1] = message.id;
    before = type;
  }
  return answers;
};

/**
 * No message names its run. Each input begins a turn, so runs and turns correspond if there are as many of
 * both; otherwise only the newest are known to.
 */
export const runsOfAnswers = (
  tree: CheckpointTree,
  shownId: string | undefined,
  messages: readonly ShownMessage[],
): ReadonlyMap<string, string> => {
  const runs = runsOn(tree, shownId);
  const answers = answersIn(messages);
  const known = tree.isWhole && runs.length === answers.length ? runs.length : 1;
  const pairs = runs.slice(-known).map((run, index) => [answers.slice(-known)[index], run] as const);
  return new Map(
    pairs.filter((pair): pair is [string, string] => pair[0] !== undefined && pair[1] !== undefined),
  );
};

/** By run id, e.g. `1.9 s`. */
export const useRunTimes = (
  threadId: string,
  runOf: ReadonlyMap<string, string>,
): ReadonlyMap<string, string> => {
  const { request } = useConnection();
  const newest = [...runOf.values()].at(-1);
  const { data } = useQuery({
    queryKey: ["threads", "run-times", threadId, newest],
    queryFn: async () => {
      const query = FIELDS.map((field) => `select=${field}`).join("&");
      const runs = await request<Run[]>("GET", `/threads/${threadId}/runs?limit=${RUNS_AT_MOST}&${query}`);
      return new Map(
        runs.flatMap((run) => {
          const time = run.run_ended_at == null ? undefined : durationOf(run, 0);
          return time === undefined ? [] : [[run.run_id, time] as const];
        }),
      );
    },
    enabled: newest !== undefined,
    staleTime: Infinity,
    structuralSharing: false,
    placeholderData: (before) => before,
  });
  return data ?? NO_RUNS;
};

/** A turn with more rows shows the tokens of the last ones. */
const ROWS_OF_TURN = 200;
const CHARACTERS_OF_MODEL = 40;

const modelOf = ({ response_metadata: response }: ShownMessage): string | undefined => {
  const name = isObject(response) ? (response["model_name"] ?? response["model"]) : undefined;
  return typeof name === "string" && name !== "" ? truncate(name, CHARACTERS_OF_MODEL) : undefined;
};

/** E.g. `gpt-5 · 1.9 s · 907 tokens`; what is unknown is left out. */
export const figuresText = (
  rows: readonly Row[],
  index: number,
  time: string | undefined,
): string | undefined => {
  let tokens = 0;
  let model: string | undefined;
  for (let at = index; at >= Math.max(0, index - ROWS_OF_TURN); at -= 1) {
    const row = rows[at];
    if (row === undefined || typeOf(row.message) === "human") break;
    for (const message of [...row.more].reverse().concat(row.message)) {
      tokens += tokensOf(message);
      model ??= modelOf(message);
    }
  }
  const parts = [
    model,
    time,
    tokens === 0 ? undefined : `${tokens.toLocaleString("en")} ${tokens === 1 ? "token" : "tokens"}`,
  ].filter((part) => part !== undefined);
  return parts.length === 0 ? undefined : parts.join(" · ");
};
