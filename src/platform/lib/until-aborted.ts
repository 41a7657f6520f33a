/** Rejects with the reason of `signal` once it aborts. The work continues, and its result is dropped. */
export const untilAborted = async <Result>(
  signal: AbortSignal | undefined,
  work: Promise<Result>,
): Promise<Result> => {
  if (signal === undefined) return await work;
  let abort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    abort = () => reject(signal.reason as Error);
  });
  signal.addEventListener("abort", abort);
  if (signal.aborted) abort();
  try {
    return await Promise.race([aborted, work]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
};
