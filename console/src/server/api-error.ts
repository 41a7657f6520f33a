import { withRetryTime } from "./rate-limit.ts";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Options `http.disable_…` of langgraph.json remove parts of the API. */
const NO_ROUTE = /^There is no route [A-Z]+ \S+\.$/;
const explainMissingRoute = (sentence: string): string =>
  NO_ROUTE.test(sentence) ? `This server does not offer this part of the API. ${sentence}` : sentence;

export const messageIn = (text: string, status: number): string => {
  try {
    const { message, detail } = JSON.parse(text) as { message?: unknown; detail?: unknown };
    for (const sentence of [message, detail])
      if (typeof sentence === "string") return explainMissingRoute(sentence);
  } catch {
    // The body is not JSON: a proxy answered, and its text is not shown.
  }
  return `The server answered with HTTP ${status}.`;
};

export const apiErrorFrom = async (answer: Response): Promise<ApiError> =>
  new ApiError(answer.status, withRetryTime(messageIn(await answer.text(), answer.status), answer));

/** Undefined if the server did not answer. */
export const statusOf = (thrown: unknown): number | undefined => {
  if (thrown instanceof ApiError) return thrown.status;
  const status = (thrown as { status?: unknown } | null)?.status;
  return typeof status === "number" ? status : undefined;
};

export const isAuthError = (thrown: unknown): boolean => [401, 403].includes(statusOf(thrown) ?? 0);

export const isTransient = (thrown: unknown): boolean => {
  const status = statusOf(thrown);
  return status === undefined || status === 429 || status >= 500;
};
