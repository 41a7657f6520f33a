import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { StartError } from "../../platform/domain/errors.ts";
import type { GraphConfig } from "../../graphs/project/langgraph-json.ts";
import { webhookHeaders, webhooksWarning } from "../../graphs/project/webhooks.ts";
import type { Environment } from "../../platform/config/resolve.ts";
import { fail, ok, warn, type Check } from "./checks.ts";
import type { LoadingAnswer, LoadingRequest } from "./loading-check.ts";

const ENTRY = fileURLToPath(new URL("./loading-check-entry.js", import.meta.url));
const OUTPUT_CHARACTERS = 2_000;

/** A child process, because the module may hang, exit, or keep handles open. */
export const loadElsewhere = (
  request: LoadingRequest,
  environment: Environment,
  timeoutMs: number,
): Promise<LoadingAnswer> =>
  new Promise((resolve) => {
    const child = fork(ENTRY, [], {
      env: { ...environment },
      execArgv: [],
      stdio: ["ignore", "pipe", "pipe", "ipc"],
    });
    let output = "";
    const keep = (chunk: Buffer): void =>
      void (output = (output + chunk.toString()).slice(-OUTPUT_CHARACTERS));
    child.stdout?.on("data", keep);
    child.stderr?.on("data", keep);
    const timer = setTimeout(() => {
      resolve({ failure: `Not loaded after ${timeoutMs / 1_000} s.` });
      child.kill("SIGKILL");
    }, timeoutMs);
    child.on("message", (answer) => resolve(answer as LoadingAnswer));
    child.on("error", (error) => resolve({ failure: error.message }));
    child.on("close", (code, signal) => {
      clearTimeout(timer);
      resolve({ failure: `The process that loaded it ended with ${signal ?? code}. ${output}`.trim() });
    });
    child.send(request, () => undefined);
  });

export const checkGraphs = async (
  request: Omit<LoadingRequest, "part">,
  environment: Environment,
  timeoutMs: number,
): Promise<Check> => {
  const answer = await loadElsewhere({ ...request, part: "graphs" }, environment, timeoutMs);
  return "found" in answer
    ? ok("Graphs", answer.found.join(", "))
    : fail("Graphs", answer.failure, "Correct it: the server refuses to start.");
};

const EVENTS_SHOWN = 10;

export async function* checkProjectParts(
  project: GraphConfig,
  request: Omit<LoadingRequest, "part">,
  environment: Environment,
  timeoutMs: number,
): AsyncGenerator<Check> {
  const refused = "Correct it: the server refuses to start.";
  const { auth, http, webhooks } = project;
  if (auth !== undefined) {
    const answer = await loadElsewhere({ ...request, part: "auth" }, environment, timeoutMs);
    if ("failure" in answer) yield fail("auth", answer.failure, refused);
    else if (answer.found.length > 0) {
      const events = answer.found.slice(0, EVENTS_SHOWN).join(", ");
      const more =
        answer.found.length > EVENTS_SHOWN ? ` and ${answer.found.length - EVENTS_SHOWN} more` : "";
      const advice = "Write handlers for them, or one for '*'.";
      yield warn(
        "auth",
        `no handler covers these events, so every user may do them: ${events}${more}`,
        advice,
      );
    } else yield ok("auth", `${auth.file} loads and covers every event`);
    if (auth.letsStudioIn)
      yield warn(
        "auth",
        "auth.disable_studio_auth is false: callers that claim to be Studio are let in without a check",
        "Remove it, unless only you can reach this server.",
      );
  }
  if (http.app !== undefined) {
    const answer = await loadElsewhere({ ...request, part: "http.app" }, environment, timeoutMs);
    if ("failure" in answer) yield fail("http.app", answer.failure, refused);
    else yield ok("http.app", `${http.app.file} loads`);
  }
  if (webhooks.disabled || Object.keys(webhooks.headers).length === 0) return;
  try {
    webhookHeaders(webhooks, environment);
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    yield fail("webhooks", error.message, refused);
    return;
  }
  const warning = webhooksWarning(webhooks);
  yield warning === undefined
    ? ok("webhooks", "the variables of their headers are set")
    : warn("webhooks", warning, "List the allowed domains in webhooks.url.allowed_domains.");
}
