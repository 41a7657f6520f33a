import { isObject } from "../is-object.ts";
import type { ActionAnswer, ActionCard, ActionWords, Decision, Question } from "./card.ts";

const objectOf = (value: unknown): Record<string, unknown> => (isObject(value) ? value : {});
const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

const INBOX_WORDS: ActionWords = {
  labels: {
    accept: "Accept",
    edit: "Send the edited arguments",
    respond: "Respond",
    ignore: "Ignore",
  },
  past: { accept: "Accepted", edit: "Edited", respond: "Responded to", ignore: "Ignored" },
  text: "Response",
  needsText: true,
};

const inboxCard = (value: unknown): ActionCard | undefined => {
  if (!isObject(value) || !isObject(value["action_request"])) return undefined;
  const config = objectOf(value["config"]);
  const { action, args } = value["action_request"];
  const known = objectOf(args);
  return {
    kind: "action",
    title: undefined,
    action: textOf(action) ?? "?",
    args: known,
    description: textOf(value["description"]),
    allowed: (["accept", "edit", "respond", "ignore"] as const).filter(
      (name) => config[`allow_${name}`] === true,
    ),
    words: INBOX_WORDS,
    isOpen: false,
    answerOf: ({ decision, args: edited, text }) => {
      if (decision === "accept" || decision === "edit")
        return { type: decision, args: { action, args: edited ?? known } };
      return decision === "respond" ? { type: "response", args: text ?? "" } : { type: "ignore", args: null };
    },
  };
};

const areKnown = (cards: readonly (ActionCard | undefined)[]): cards is readonly ActionCard[] =>
  cards.every((card) => card !== undefined);

/** Agent inboxes (`action_request`, `config`) answer a single action with a list too. */
const inboxQuestion = (value: unknown): Question | undefined => {
  const cards = (Array.isArray(value) ? (value as unknown[]) : [value]).map(inboxCard);
  return areKnown(cards) ? { cards, answerOf: (values) => values } : undefined;
};

const DECISIONS: ReadonlyMap<unknown, Decision> = new Map<unknown, Decision>([
  ["approve", "accept"],
  ["edit", "edit"],
  ["reject", "respond"],
]);

const APPROVAL_WORDS: ActionWords = {
  labels: { accept: "Approve", edit: "Send the edited arguments", respond: "Reject", ignore: "Reject" },
  past: { accept: "Approved", edit: "Edited", respond: "Rejected", ignore: "Rejected" },
  text: "Reason (if you reject)",
  needsText: false,
};

const middlewareAnswer = (name: string, { decision, args, text }: ActionAnswer): unknown => {
  if (decision === "accept") return { type: "approve" };
  if (decision === "respond") return { type: "reject", ...(text !== "" && { message: text }) };
  const edited = { name, args };
  // Python and JavaScript use different names.
  return { type: "edit", editedAction: edited, edited_action: edited };
};

/** LangChain's human-in-the-loop middleware: `actionRequests` and `reviewConfigs`, or snake case. */
const middlewareQuestion = (value: unknown): Question | undefined => {
  if (!isObject(value)) return undefined;
  const actions = value["actionRequests"] ?? value["action_requests"];
  if (!Array.isArray(actions)) return undefined;
  const reviews = value["reviewConfigs"] ?? value["review_configs"];
  const configs = (Array.isArray(reviews) ? (reviews as unknown[]) : []).map(objectOf);
  const cards = (actions as unknown[]).map(objectOf).map((request): ActionCard => {
    const action = textOf(request["name"] ?? request["action_name"] ?? request["action"]) ?? "?";
    const config = configs.find((one) => (one["actionName"] ?? one["action_name"]) === action);
    const allowed = config?.["allowedDecisions"] ?? config?.["allowed_decisions"];
    const named = Array.isArray(allowed) ? (allowed as unknown[]) : [...DECISIONS.keys()];
    return {
      kind: "action",
      title: undefined,
      action,
      args: objectOf(request["args"] ?? request["arguments"]),
      description: textOf(request["description"]),
      allowed: named.flatMap((name) => DECISIONS.get(name) ?? []),
      words: APPROVAL_WORDS,
      isOpen: false,
      answerOf: (answer) => middlewareAnswer(action, answer),
    };
  });
  return { cards, answerOf: (decisions) => ({ decisions }) };
};

const REVIEW_WORDS: ActionWords = {
  labels: { ...APPROVAL_WORDS.labels, respond: "Send feedback" },
  past: { ...APPROVAL_WORDS.past, respond: "Sent feedback on" },
  text: "Feedback",
  needsText: true,
};

/** LangGraph's guide to reviews of tool calls: `{question, tool_call}`, answered by `{action, data}`. */
const reviewAnswer = ({ decision, args, text }: ActionAnswer): unknown => {
  if (decision === "accept") return { action: "continue" };
  return decision === "edit" ? { action: "update", data: args } : { action: "feedback", data: text };
};

const TITLES = ["question", "title", "prompt", "message"];

const plainQuestion = (value: unknown): Question | undefined => {
  if (!isObject(value)) return undefined;
  const call = value["tool_call"] ?? value["toolCall"];
  const { action, name, args } = isObject(call) ? call : value;
  const named = textOf(action) ?? textOf(name);
  if (named === undefined || !isObject(args)) return undefined;
  const isReview = isObject(call);
  const card: ActionCard = {
    kind: "action",
    title: TITLES.map((key) => textOf(value[key])).find((text) => text !== undefined && text !== ""),
    action: named,
    args,
    description: textOf(value["description"]),
    // A graph that expects a boolean would take edited arguments for a yes.
    allowed: isReview ? ["accept", "edit", "respond"] : ["accept", "ignore"],
    words: isReview ? REVIEW_WORDS : APPROVAL_WORDS,
    isOpen: true,
    answerOf: isReview ? reviewAnswer : ({ decision }) => decision === "accept",
  };
  return { cards: [card], answerOf: ([answer]) => answer };
};

/** A card without a button would block the thread. */
export const actionQuestion = (value: unknown): Question | undefined => {
  const question = middlewareQuestion(value) ?? inboxQuestion(value) ?? plainQuestion(value);
  if (question === undefined || question.cards.length === 0) return undefined;
  return question.cards.every((card) => card.kind === "action" && card.allowed.length > 0)
    ? question
    : undefined;
};
