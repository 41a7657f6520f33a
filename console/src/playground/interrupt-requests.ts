import { isObject } from "../parts/is-object.ts";

/**
 * What a thread waits for, as far as the value of an interrupt tells. Two shapes are in the field: the one that agent inboxes know
 * (`action_request`, `config`; alone or in a list), and that of LangChain's human-in-the-loop middleware (`actionRequests`,
 * `reviewConfigs`, or the same in snake case). Everything else is answered by one of its `options`, JSON or a text.
 */
export type Decision = "accept" | "edit" | "respond" | "ignore";

/** One action that a person is actions about. */
export interface ActionRequest {
  action: string;
  args: Record<string, unknown>;
  /** Markdown. */
  description: string | undefined;
  allowed: readonly Decision[];
}

/** What a person has decided about one. */
export interface ActionAnswer {
  decision: Decision;
  /** Of `edit`: the changed arguments. */
  args?: Record<string, unknown>;
  /** Of `respond`. */
  text?: string;
}

export interface ActionQuestion {
  requests: readonly ActionRequest[];
  /** What the graph gets. */
  answerOf(answers: readonly ActionAnswer[]): unknown;
  /** Who answers `respond` rejects: then the text says why. */
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

/** Agent inboxes answer with a list also where they were actions for one action, so that is what graphs expect. */
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
        // Python says it in the one way, JavaScript in the other.
        return { type: "edit", editedAction: edited, edited_action: edited };
      }),
    }),
  };
};

/** Undefined if it is neither of the two, or lets nobody decide: a form without a button would hold the thread up for ever. */
export const actionQuestion = (value: unknown): ActionQuestion | undefined => {
  const question = middlewareQuestion(value) ?? inboxQuestion(value);
  return question?.requests.every(({ allowed }) => allowed.length > 0) === true ? question : undefined;
};

/** One of the answers that a question offers. */
export interface AnswerOption {
  label: string;
  /** What the graph gets. */
  answer: unknown;
}

const answerOption = (option: unknown): AnswerOption | undefined => {
  if (typeof option === "string") return option.trim() === "" ? undefined : { label: option, answer: option };
  if (typeof option === "number" || typeof option === "boolean")
    return { label: String(option), answer: option };
  if (!isObject(option) || typeof option["label"] !== "string" || !("value" in option)) return undefined;
  return option["label"].trim() === "" ? undefined : { label: option["label"], answer: option["value"] };
};

/** What `options` of a question offers: texts, numbers, booleans, or `{label, value}`. None if one of them has another shape. */
export const optionsOf = (value: unknown): readonly AnswerOption[] => {
  const offered = objectOf(value)["options"];
  if (!Array.isArray(offered)) return [];
  const options = (offered as unknown[]).map(answerOption);
  return options.every((option) => option !== undefined) ? options : [];
};
