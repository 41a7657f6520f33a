import type { WithoutContents } from "./contents.ts";

class LateError extends Error implements WithoutContents {
  readonly hidesContents = true;
  constructor(milliseconds: number) {
    super(`no answer within ${milliseconds} ms`);
  }
}

/** Rejects after `milliseconds`. The work continues, and its result is dropped. */
export const within = async <Answer>(milliseconds: number, work: Promise<Answer>): Promise<Answer> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new LateError(milliseconds)), milliseconds);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
};
