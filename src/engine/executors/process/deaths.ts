/**
 * Why a graph process has ended. `signal`: any sender; `blocked`: it was killed because it did not answer; `unstopped`: because a
 * run did not end. `memory`: its heap was full, or it was killed because it took too much. `start`: there never was a process, or
 * it was killed because it did not get ready.
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
