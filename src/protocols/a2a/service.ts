import type { CallService } from "../calls/service.ts";
import type { CardParts } from "./card.ts";
import type { Transports } from "./transports.ts";

export interface A2aServiceParts extends CardParts {
  calls: CallService;
}

export const createA2aService = ({ calls, ...cardParts }: A2aServiceParts) => {
  let loaded: Promise<Transports> | undefined;
  return {
    /** Loads the package at the first request, because servers without A2A need none of it. */
    transports(): Promise<Transports> {
      loaded ??= import("./transports.ts").then(({ createTransports }) => createTransports(calls, cardParts));
      return loaded;
    },
    /** See JoiningService. */
    assertStill: calls.joining.assertStill,
  };
};

export type A2aService = ReturnType<typeof createA2aService>;
