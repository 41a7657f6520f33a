import { withTimeToWait } from "./rate-limit.ts";

/** What the server answered that was no success; `message` is its own sentence. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

/** Parts of the API may be left out by `http.disable_…` of langgraph.json. */
const NO_ROUTE = /^There is no route [A-Z]+ \S+\.$/;
const worded = (sentence: string): string =>
  NO_ROUTE.test(sentence) ? `This server does not offer this part of the API. ${sentence}` : sentence;

/** What the server says in the body of an answer. */
export const sentenceOf = (text: string, status: number): string => {
  try {
    const { message, detail } = JSON.parse(text) as { message?: unknown; detail?: unknown };
    for (const sentence of [message, detail]) if (typeof sentence === "string") return worded(sentence);
  } catch {
    // No JSON: a proxy's own words, of which none is shown.
  }
  return `The server answered with HTTP ${status}.`;
};

/** What an answer that is no success says. */
export const refusalIn = async (answer: Response): Promise<Refusal> =>
  new Refusal(answer.status, withTimeToWait(sentenceOf(await answer.text(), answer.status), answer));
