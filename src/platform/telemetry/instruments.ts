import { metrics, type Attributes } from "@opentelemetry/api";
import { ATTRIBUTES, INSTRUMENTS, SCOPE, SECONDS_BUCKETS, TOKENS_BUCKETS } from "./names.ts";

type InstrumentName = keyof typeof INSTRUMENTS;

const DESCRIPTIONS: Readonly<Record<InstrumentName, string>> = {
  modelTime: "Time of calls of models.",
  toolTime: "Time of calls of tools.",
  attemptTime: "Time of the last attempts of runs.",
  queueTime: "Time from when runs were due to their first attempts.",
  requestTime: "Time of requests, without streams.",
  tokens: "Tokens of calls of models.",
};

/** The attribute of what failed. */
export const failure = (failed: boolean): Attributes => (failed ? { [ATTRIBUTES.errorType]: "_OTHER" } : {});

/** The metrics of the conventions. All others: `/metrics`, which a collector can read, too. Labels must be bounded. */
export const createInstruments = () => {
  const meter = metrics.getMeter(SCOPE);
  const made = new Map(
    Object.entries(DESCRIPTIONS).map(([key, description]) => {
      const name = key as InstrumentName;
      const [unit, buckets] = name === "tokens" ? ["{token}", TOKENS_BUCKETS] : ["s", SECONDS_BUCKETS];
      const advice = { explicitBucketBoundaries: [...buckets] };
      return [name, meter.createHistogram(INSTRUMENTS[name], { unit, description, advice })];
    }),
  );
  return (name: InstrumentName, value: number, attributes: Attributes): void =>
    made.get(name)?.record(value, attributes);
};
