import type { Caller } from "../../../access/caller.ts";
import type { JsonObject } from "../../../platform/lib/json.ts";
import type { WhenLarge } from "../../../platform/lib/large-answers.ts";
import type { CommandAnswer, CommandEnvelope } from "../schemas.ts";
import { CommandError, isForHttp, refusalOf } from "./envelope.ts";
import { createRunCommands, type Done, type RunCommandParts } from "./runs.ts";
import { createStateCommands, type StateCommandParts } from "./states.ts";

export interface Commanding {
  caller: Caller;
  threadId: string;
  /** Headers for the configuration of runs. */
  headers: Readonly<Record<string, string>> | undefined;
  whenLarge: WhenLarge;
  /** The caller does not see these details. */
  onFault: (error: unknown) => void;
}

type Command = (commanding: Commanding, params: JsonObject) => Promise<Done>;

const notSupported =
  (why: string): Command =>
  async () => {
    throw new CommandError("not_supported", why);
  };

export const createCommandService = (parts: RunCommandParts & StateCommandParts) => {
  const runs = createRunCommands(parts);
  const states = createStateCommands(parts);
  const ofSocket = notSupported("Subscriptions are for WebSockets: POST /threads/{thread_id}/stream/events.");

  const commands = new Map<string, Command>([
    ["run.start", (commanding, params) => runs.start(commanding, params)],
    ["input.respond", (commanding, params) => runs.respond(commanding, params)],
    ["input.inject", notSupported("Nothing can be put into a run that goes on: start another one.")],
    ["agent.getTree", ({ caller, threadId }, params) => states.tree(caller, threadId, params)],
    [
      "state.get",
      ({ caller, threadId, whenLarge }, params) => states.get(caller, threadId, params, whenLarge),
    ],
    [
      "state.listCheckpoints",
      ({ caller, threadId, whenLarge }, params) =>
        states.listCheckpoints(caller, threadId, params, whenLarge),
    ],
    ["state.fork", (commanding, params) => runs.fork(commanding, params)],
    ["subscription.subscribe", ofSocket],
    ["subscription.unsubscribe", ofSocket],
    ["subscription.reconnect", ofSocket],
  ]);

  const perform = async (
    commanding: Commanding,
    { id, method, params }: CommandEnvelope,
  ): Promise<CommandAnswer> => {
    const command = commands.get(method);
    if (command === undefined) throw new CommandError("unknown_command", `There is no command '${method}'.`);
    const { result, appliedThroughSeq } = await command(commanding, params);
    const meta = {
      thread_id: commanding.threadId,
      ...(appliedThroughSeq === undefined ? {} : { applied_through_seq: appliedThroughSeq }),
    };
    return { type: "success", id, result, meta };
  };

  return {
    /** Throws errors that have an HTTP status. */
    async overHttp(commanding: Commanding, envelope: CommandEnvelope): Promise<CommandAnswer> {
      try {
        return await perform(commanding, envelope);
      } catch (error) {
        if (isForHttp(error)) throw error;
        return refusalOf(envelope.id, error, commanding.onFault);
      }
    },

    async overSocket(commanding: Commanding, envelope: CommandEnvelope): Promise<CommandAnswer> {
      try {
        return await perform(commanding, envelope);
      } catch (error) {
        return refusalOf(envelope.id, error, commanding.onFault);
      }
    },
  };
};
