import { sqlState, StateLostError, StateStorageError } from "../../../platform/domain/errors.ts";
import { describeThrown } from "../../../platform/lib/thrown.ts";

/** An error as it crosses the pipe: what the log, the client and the end of the run need to know of it. */
export interface DescribedError {
  /** `passing`: the database was away or has lost state, so that the run is tried again. */
  kind: "passing" | "state-storage" | "database" | "other";
  name: string;
  message: string;
  stack: string | undefined;
  /** As errors of Node and of PostgreSQL have it. */
  code: string | undefined;
  cause: DescribedError | undefined;
}

/** A stack of a usual depth; messages are bounded by `describeThrown`. */
const STACK_CHARACTERS_AT_MOST = 10_000;
/** As many as the log writes. */
const CAUSES_AT_MOST = 5;

/** `isLoss`: see Database, of the process in which the error was thrown. */
export const describeError = (
  error: unknown,
  isLoss: (error: unknown) => boolean,
  causes = CAUSES_AT_MOST,
): DescribedError => {
  const { stack, cause } = error instanceof Error ? error : {};
  const kindOf = (): DescribedError["kind"] => {
    if (isLoss(error) || error instanceof StateLostError) return "passing";
    if (error instanceof StateStorageError) return "state-storage";
    return sqlState(error) !== undefined && "routine" in (error as Error) ? "database" : "other";
  };
  return {
    kind: kindOf(),
    ...describeThrown(error),
    stack: typeof stack === "string" ? stack.slice(0, STACK_CHARACTERS_AT_MOST) : undefined,
    code: sqlState(error),
    cause: cause instanceof Error && causes > 0 ? describeError(cause, isLoss, causes - 1) : undefined,
  };
};

/** The database was away in the process that executed the graph. */
export class PassedFaultError extends Error {}

/** An error that says the same in this process. */
export const restoreError = ({ kind, name, message, stack, code, cause }: DescribedError): Error => {
  const options = cause === undefined ? {} : { cause: restoreError(cause) };
  const error =
    kind === "passing"
      ? new PassedFaultError(message, options)
      : kind === "state-storage"
        ? new StateStorageError(message, options)
        : new Error(message, options);
  return Object.assign(error, {
    name,
    stack,
    ...(code === undefined ? {} : { code }),
    // By which the end of a run knows what PostgreSQL said (attempt/outcomes.ts).
    ...(kind === "database" ? { routine: "" } : {}),
  });
};
