import { isRegular, isSpare, type Member, type Members } from "./members.ts";

/** Says to a person why the new code of the graphs is not executed. The old code goes on. */
export class NotRenewed extends Error {
  override readonly name = "NotRenewed";
}

interface Renewal {
  successor: Member;
  settle(failure?: NotRenewed): void;
}

export const createRenewal = (members: Members) => {
  let renewal: Renewal | undefined;

  /** For a process without executions. */
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
     * A later call replaces a running one. `isWhole`: the environment or the loader has changed, so started
     * spares are outdated. Throws NotRenewed if the new code can't be loaded.
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

    isUnderWay: (): boolean => renewal !== undefined,

    hasStarted(member: Member): void {
      if (member !== renewal?.successor) return;
      // These processes finish their runs and begin no more.
      [...members.all].filter(isRegular).forEach(members.leave);
      member.role = "regular";
      end();
    },
    hasFailed(member: Member, message: string): boolean {
      if (member !== renewal?.successor) return false;
      end(new NotRenewed(message));
      discard(member);
      return true;
    },
    hasEnded(member: Member, how: string): void {
      if (member === renewal?.successor) end(new NotRenewed(`The process that loaded the graphs ${how}.`));
    },
    close: (): void => end(new NotRenewed("The server stops.")),
  };
};
