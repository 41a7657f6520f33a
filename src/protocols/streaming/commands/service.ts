import type { JsonObject } from "../../../platform/lib/json.ts";
import { CallerGoneError } from "../../../platform/domain/errors.ts";
import type { CommandAnswer, CommandEnvelope } from "../schemas.ts";
import {
  CommandError,
  isForHttp,
  refusalOf,
  type CommandSender,
  type Done,
  type RunCommands,
} from "./runs.ts";
import type { StateCommands } from "./states.ts";

type Command = (sender: CommandSender, params: JsonObject) => Promise<Done>;

const notSupported =
  (why: string): Command =>
  async () => {
    throw new CommandError("not_supported", why);
  };

export const createCommandService = (runs: RunCommands, states: StateCommands) => {
  const ofSocket = notSupported("Subscriptions are for WebSockets: POST /threads/{thread_id}/stream/events.");

  const commands = new Map<string, Command>([
    ["run.start", runs.start],
    ["input.respond", runs.respond],
    ["input.inject", notSupported("Nothing can be put into a run that goes on: start another one.")],
    ["agent.getTree", states.tree],
    ["state.get", states.get],
    ["state.listCheckpoints", states.listCheckpoints],
    ["state.fork", runs.fork],
    ["subscription.subscribe", ofSocket],
    ["subscription.unsubscribe", ofSocket],
    ["subscription.reconnect", ofSocket],
  ]);

  const perform = async (
    sender: CommandSender,
    { id, method, params }: CommandEnvelope,
  ): Promise<CommandAnswer> => {
    const command = commands.get(method);
    if (command === undefined) throw new CommandError("unknown_command", `There is no command '${method}'.`);
    const { result, appliedThroughSeq } = await command(sender, params);
    const meta = {
      thread_id: sender.threadId,
      ...(appliedThroughSeq === undefined ? {} : { applied_through_seq: appliedThroughSeq }),
    };
    return { type: "success", id, result, meta };
  };

  return {
    /** Throws the errors of `isForHttp`. */
    async overHttp(sender: CommandSender, envelope: CommandEnvelope): Promise<CommandAnswer> {
      try {
        return await perform(sender, envelope);
      } catch (error) {
        if (isForHttp(error)) throw error;
        return refusalOf(envelope.id, error, sender.onFault);
      }
    },

    async overSocket(sender: CommandSender, envelope: CommandEnvelope): Promise<CommandAnswer> {
      try {
        return await perform(sender, envelope);
      } catch (error) {
        if (error instanceof CallerGoneError) throw error;
        return refusalOf(envelope.id, error, sender.onFault);
      }
    },
  };
};
