import { isObject } from "../parts/is-object.ts";

/**
 * Known formats: agent inboxes (`action_request`, `config`; alone or in a list), and LangChain's
 * human-in-the-loop middleware (`actionRequests`, `reviewConfigs`, or snake case).
 */
export type Decision = "accept" | "edit" | "respond" | "ignore";

export interface ActionRequest {
  action: string;
  args: Record<string, unknown>;
  /** Markdown. */
  description: string | undefined;
  allowed: readonly Decision[];
}

export interface ActionAnswer {
  decision: Decision;
  /** Only of `edit`. */
  args?: Record<string, unknown>;
  /** Only of `respond`. */
  text?: string;
}

export interface ActionQuestion {
  requests: readonly ActionRequest[];
  /** The value for the graph. */
  answerOf(answers: readonly ActionAnswer[]): unknown;
  /** The middleware has rejections instead of responses. */
  labels: Readonly<Record<Decision, string>>;
}

const objectOf = (value: unknown): Record<string, unknown> => (isObject(value) ? value : {});
const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

const inboxRequest = (value: unknown): ActionRequest | undefined => {
  if (!isObject(value) || !isObject(value["action_request"])) return undefined;
  const config = objectOf(value["config"]);
  const may = (name: string): boolean => config[name] === true;
  const { action, args } = value["action_request"];
  return {
    action: textOf(action) ?? "?",
    args: objectOf(args),
    description: textOf(value["description"]),
    allowed: [
      ...(may("allow_accept") ? (["accept"] as const) : []),
      ...(may("allow_edit") ? (["edit"] as const) : []),
      ...(may("allow_respond") ? (["respond"] as const) : []),
      ...(may("allow_ignore") ? (["ignore"] as const) : []),
    ],
  };
};

/** Agent inboxes answer a single action with a list too. */
const inboxQuestion = (value: unknown): ActionQuestion | undefined => {
  const actions: unknown[] = Array.isArray(value) ? value : [value];
  const requests = actions.map(inboxRequest);
  if (requests.length === 0 || requests.some((request) => request === undefined)) return undefined;
  const known = requests as ActionRequest[];
  return {
    requests: known,
    labels: { accept: "Accept", edit: "Edit", respond: "Respond", ignore: "Ignore" },
    answerOf: (answers) =>
      answers.map(({ decision, args, text }, index) => {
        const request = { action: known[index]?.action, args: args ?? known[index]?.args };
        if (decision === "accept" || decision === "edit") return { type: decision, args: request };
        return decision === "respond"
          ? { type: "response", args: text ?? "" }
          : { type: "ignore", args: null };
      }),
  };
};

const DECISIONS: ReadonlyMap<unknown, Decision> = new Map<unknown, Decision>([
  ["approve", "accept"],
  ["edit", "edit"],
  ["reject", "respond"],
]);

const middlewareQuestion = (value: unknown): ActionQuestion | undefined => {
  if (!isObject(value)) return undefined;
  const actions = value["actionRequests"] ?? value["action_requests"];
  if (!Array.isArray(actions) || actions.length === 0) return undefined;
  const reviews = value["reviewConfigs"] ?? value["review_configs"];
  const configs = (Array.isArray(reviews) ? (reviews as unknown[]) : []).map(objectOf);
  const requests = (actions as unknown[]).map(objectOf).map((request): ActionRequest => {
    const action = textOf(request["name"] ?? request["action_name"] ?? request["action"]) ?? "?";
    const config = configs.find((one) => (one["actionName"] ?? one["action_name"]) === action);
    const allowed = config?.["allowedDecisions"] ?? config?.["allowed_decisions"];
    const named = Array.isArray(allowed) ? (allowed as unknown[]) : [...DECISIONS.keys()];
    return {
      action,
      args: objectOf(request["args"] ?? request["arguments"]),
      description: textOf(request["description"]),
      allowed: named.flatMap((name) => DECISIONS.get(name) ?? []),
    };
  });
  return {
    requests,
    labels: { accept: "Approve", edit: "Edit", respond: "Reject", ignore: "Ignore" },
    answerOf: (answers) => ({
      decisions: answers.map(({ decision, args, text }, index) => {
        if (decision === "accept") return { type: "approve" };
        if (decision === "respond") return { type: "reject", ...(text !== "" && { message: text }) };
        const edited = { name: requests[index]?.action, args };
        // Python and JavaScript use different names.
        return { type: "edit", editedAction: edited, edited_action: edited };
      }),
    }),
  };
};

/** A form without a button would block the thread. */
export const actionQuestion = (value: unknown): ActionQuestion | undefined => {
  const question = middlewareQuestion(value) ?? inboxQuestion(value);
  return question?.requests.every(({ allowed }) => allowed.length > 0) === true ? question : undefined;
};

export interface AnswerOption {
  label: string;
  /** The value for the graph. */
  answer: unknown;
}

const answerOption = (option: unknown): AnswerOption | undefined => {
  if (typeof option === "string") return option.trim() === "" ? undefined : { label: option, answer: option };
  if (typeof option === "number" || typeof option === "boolean")
    return { label: String(option), answer: option };
  if (!isObject(option) || typeof option["label"] !== "string" || !("value" in option)) return undefined;
  return option["label"].trim() === "" ? undefined : { label: option["label"], answer: option["value"] };
};

/** Texts, numbers, booleans, or `{label, value}`. Empty if one has another shape. */
export const optionsOf = (value: unknown): readonly AnswerOption[] => {
  const offered = objectOf(value)["options"];
  if (!Array.isArray(offered)) return [];
  const options = (offered as unknown[]).map(answerOption);
  return options.every((option) => option !== undefined) ? options : [];
};
