import { Spinner } from "../../design/spinner.tsx";
import { Status } from "../../parts/status.tsx";
import { durationText } from "../../parts/time.tsx";
import type { Trial } from "./run-version.ts";

/** The status, the time and the tokens of a run, in one line. */
export const TrialFigures = ({ trial }: { trial: Trial }) => (
  <span className="row">
    {trial.status === "running" && <Spinner />}
    <Status status={trial.status} />
    {trial.milliseconds !== undefined && <span>{durationText(trial.milliseconds)}</span>}
    {trial.tokens !== undefined && <span>{trial.tokens.toLocaleString("en")} tokens</span>}
  </span>
);
