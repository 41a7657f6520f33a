import { isRegular, isSpare, type Member } from "./member.ts";
import type { Members } from "./members.ts";

/** The new code of the graphs is not executed: why, for a person. What was executed before goes on. */
export class NotRenewed extends Error {
  override readonly name = "NotRenewed";
}

interface Renewal {
  successor: Member;
  settle(failure?: NotRenewed): void;
}

/** Puts a process with the new code of the graphs in the place of those with the old one. */
export const createRenewal = (members: Members) => {
  let renewal: Renewal | undefined;

  /** It executes nothing. */
  const discard = (member: Member): void => {
    members.leave(member);
    members.startMissing();
  };

  const end = (failure?: NotRenewed): void => {
    renewal?.settle(failure);
    renewal = undefined;
  };

  return {
    /**
     * Resolves when runs begin in the new code. A later call takes the place of one that goes on.
     * @param isWhole the environment or the loader has changed: a process that is started already knows the old ones
     * @throws NotRenewed if the new code can't be loaded
     */
    async renew({ isWhole }: { isWhole: boolean }): Promise<void> {
      if (renewal !== undefined) {
        const { successor } = renewal;
        end(new NotRenewed("was changed once more"));
        discard(successor);
      }
      if (isWhole) [...members.all].filter(isSpare).forEach(members.leave);
      const successor = members.take("successor");
      await new Promise<void>((resolve, reject) => {
        renewal = {
          successor,
          settle: (failure) => (failure === undefined ? resolve() : reject(failure)),
        };
      });
    },

    /** Whether a process loads the new code: it may be able to where others were not. */
    isUnderWay: (): boolean => renewal !== undefined,

    /** To be told of each process that is ready. */
    hasStarted(member: Member): void {
      if (member !== renewal?.successor) return;
      // They finish what they execute, and begin nothing more.
      [...members.all].filter(isRegular).forEach(members.leave);
      member.role = "regular";
      end();
    },
    /** To be told of each process that can't load its graphs; whether it was a successor. */
    hasFailed(member: Member, message: string): boolean {
      if (member !== renewal?.successor) return false;
      end(new NotRenewed(message));
      discard(member);
      return true;
    },
    /** To be told of each process that has ended. */
    hasEnded(member: Member, how: string): void {
      if (member === renewal?.successor) end(new NotRenewed(`The process that loaded the graphs ${how}.`));
    },
    close: (): void => end(new NotRenewed("The server stops.")),
  };
};
