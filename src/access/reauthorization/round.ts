import { unauthenticated } from "../../platform/domain/errors.ts";
import type { Authenticate } from "../api-keys.ts";
import { isLossOfAccess } from "../auth/refusals.ts";
import { callerName } from "../caller.ts";
import { createOnce, loseAll, type Group, type Member } from "./groups.ts";

/** Bounded, because checks share the database pool with requests. */
const QUESTIONS_AT_ONCE = 10;

/** Connections that are refused lose access. Rejects with the first error that is no refusal. */
export const askAbout = async (group: Group, authenticate: Authenticate): Promise<void> => {
  try {
    // The cached caller may be out of date.
    const caller = await authenticate({ ...group.request, afresh: true });
    if (callerName(caller) !== callerName(group.caller)) {
      throw unauthenticated("The request could not be authenticated.");
    }
    const once = createOnce();
    const ask = async (member: Member): Promise<void> => {
      try {
        await member.ask(caller, once);
        member.caller = caller;
      } catch (error) {
        if (!isLossOfAccess(error)) throw error;
        member.lose(error);
      }
    };
    const members = [...group.members];
    for (let first = 0; first < members.length; first += QUESTIONS_AT_ONCE) {
      const asked = members.slice(first, first + QUESTIONS_AT_ONCE).filter((one) => group.members.has(one));
      const failed = (await Promise.allSettled(asked.map(ask))).find(({ status }) => status === "rejected");
      if (failed?.status === "rejected") throw failed.reason;
    }
  } catch (error) {
    if (!isLossOfAccess(error)) throw error;
    loseAll(group, error);
  }
};
