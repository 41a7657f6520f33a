import { useQuery } from "@tanstack/react-query";
import { useConnection } from "../server/connection.tsx";
import { isObject } from "./is-object.ts";
import { contentText } from "./message-text.ts";

const CHARACTERS = 200;

interface StartedRun {
  kwargs?: { input?: unknown; command?: unknown } | null;
}

/** What started a run, in at most 200 characters: the last message of its input, the answer to an interrupt, or JSON. */
export const inputText = ({ kwargs }: StartedRun): string => {
  const input = kwargs?.input;
  const messages = isObject(input) ? input["messages"] : undefined;
  const last: unknown = Array.isArray(messages) ? messages.at(-1) : messages;
  const said = contentText(isObject(last) ? last["content"] : last)
    .trim()
    .replace(/\s+/g, " ");
  if (said !== "") return said.slice(0, CHARACTERS);
  const resumed = isObject(kwargs?.command) ? kwargs.command["resume"] : undefined;
  if (resumed !== undefined) return `Answer: ${JSON.stringify(resumed) ?? ""}`.slice(0, CHARACTERS);
  return input == null ? "Continued" : (JSON.stringify(input) ?? "").slice(0, CHARACTERS);
};

/** Undefined while it is read; null if the run was deleted. */
export const useInputText = (threadId: string, runId: string | undefined): string | null | undefined => {
  const { request } = useConnection();
  const { data, isError } = useQuery({
    queryKey: ["threads", threadId, "run-input", runId],
    queryFn: async () => inputText(await request<StartedRun>("GET", `/threads/${threadId}/runs/${runId}`)),
    enabled: runId !== undefined,
    staleTime: Infinity,
    retry: false,
  });
  return runId === undefined || isError ? null : data;
};
