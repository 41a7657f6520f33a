import { withRetryTime } from "./rate-limit.ts";

/** What the server answered that was no success; `message` is its own sentence. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Parts of the API may be left out by `http.disable_…` of langgraph.json. */
const NO_ROUTE = /^There is no route [A-Z]+ \S+\.$/;
const explainMissingRoute = (sentence: string): string =>
  NO_ROUTE.test(sentence) ? `This server does not offer this part of the API. ${sentence}` : sentence;

/** What the server says in the body of an answer. */
export const messageIn = (text: string, status: number): string => {
  try {
    const { message, detail } = JSON.parse(text) as { message?: unknown; detail?: unknown };
    for (const sentence of [message, detail])
      if (typeof sentence === "string") return explainMissingRoute(sentence);
  } catch {
    // No JSON: a proxy's own words, of which none is shown.
  }
  return `The server answered with HTTP ${status}.`;
};

/** What an answer that is no success says. */
export const apiErrorFrom = async (answer: Response): Promise<ApiError> =>
  new ApiError(answer.status, withRetryTime(messageIn(await answer.text(), answer.status), answer));
