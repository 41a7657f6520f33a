import { retryPassing } from "../../platform/database/passing-faults.ts";

/** Longer than a failover. Afterwards the connection is dropped, and a resuming client gets 503. */
const PATIENCE_SECONDS = 60;

/** Wakes a reader when there is something new, also if it came before the reader began to wait. */
export class News {
  #hasCome = false;
  #wake: (() => void) | undefined;

  /** Call before a look at what the news are about. */
  forget(): void {
    this.#hasCome = false;
  }

  readonly come = (): void => {
    this.#hasCome = true;
    this.#wake?.();
  };

  /** `atMostMs`: news may be lost. */
  async wait(atMostMs?: number): Promise<void> {
    if (this.#hasCome) return;
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
      if (atMostMs !== undefined) timer = setTimeout(resolve, atMostMs);
    });
    clearTimeout(timer);
    this.#wake = undefined;
  }
}

/** Waits for an unreachable database. `"lost"`: for too long, or nobody wants the answer any more. */
export const patiently = async <Found>(
  read: () => Promise<Found>,
  isWanted: () => boolean,
  onFailure: (error: unknown) => void,
): Promise<Found | "lost"> => {
  try {
    return await retryPassing(read, { forMs: PATIENCE_SECONDS * 1_000, isWanted });
  } catch (error) {
    if (isWanted()) onFailure(error);
    return "lost";
  }
};
