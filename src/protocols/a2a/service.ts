import type { SendResult } from "../../engine/outbox/dispatcher.ts";
import type { SentPush } from "../../engine/outbox/pushes.ts";
import type { CallService } from "../calls/service.ts";
import type { CardParts } from "./card.ts";
import type { PushParts, PushSender } from "./pushes.ts";
import type { Transports } from "./transports.ts";

export interface A2aServiceParts extends Pick<CardParts, "security"> {
  calls: CallService;
  /** Undefined on a server without webhooks. */
  push: PushParts | undefined;
}

export const createA2aService = ({ calls, push, security }: A2aServiceParts) => {
  let sender: Promise<PushSender> | undefined;
  let loaded: Promise<Transports> | undefined;
  return {
    /** Loads the package at the first request, because servers without A2A need none of it. */
    transports(): Promise<Transports> {
      loaded ??= import("./transports.ts").then(({ createTransports }) =>
        createTransports(calls, { security, push }),
      );
      return loaded;
    },

    /** For the dispatcher of push notifications. */
    async sendPush(sent: SentPush, signal: AbortSignal): Promise<SendResult> {
      if (push === undefined) return { kind: "stopped" };
      sender ??= import("./pushes.ts").then(({ createPushSender }) => createPushSender(calls, push));
      return await (
        await sender
      )(sent, signal);
    },

    /** See JoiningService. */
    assertStill: calls.joining.assertStill,
  };
};

export type A2aService = ReturnType<typeof createA2aService>;
