/**
 * `signal`: from any sender; `blocked`: killed because it did not answer; `unstopped`: killed because a run
 * ignored `stop`; `memory`: full heap, or killed above the limit; `start`: never became ready.
 */
export type DeathReason = "exit" | "signal" | "blocked" | "unstopped" | "memory" | "start";

export const NO_DEATHS: Readonly<Record<DeathReason, number>> = {
  exit: 0,
  signal: 0,
  blocked: 0,
  unstopped: 0,
  memory: 0,
  start: 0,
};
