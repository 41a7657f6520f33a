import { sqlState, StateLostError, StateStorageError } from "../../../platform/domain/errors.ts";
import { describeThrown } from "../../../platform/lib/thrown.ts";

export interface DescribedError {
  /** `passing`: the database was unreachable or lost state, so the run is tried again. */
  kind: "passing" | "state-storage" | "database" | "other";
  name: string;
  message: string;
  stack: string | undefined;
  code: string | undefined;
  cause: DescribedError | undefined;
}

const STACK_CHARACTERS_AT_MOST = 10_000;
const CAUSES_AT_MOST = 5;

export const describeError = (
  error: unknown,
  isLoss: (error: unknown) => boolean,
  causes = CAUSES_AT_MOST,
): DescribedError => {
  const { stack, cause } = error instanceof Error ? error : {};
  const kindOf = (): DescribedError["kind"] => {
    if (isLoss(error) || error instanceof StateLostError || error instanceof PassedFaultError)
      return "passing";
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

/** Another process could not reach the database, or the database lost state. */
export class PassedFaultError extends Error {}

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
    // error-for-clients.ts recognizes errors of PostgreSQL by this property.
    ...(kind === "database" ? { routine: "" } : {}),
  });
};
