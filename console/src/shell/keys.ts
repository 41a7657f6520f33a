import { useEffect } from "react";
import { tinykeys } from "tinykeys";
import { useAllCommands } from "../parts/commands.tsx";

const isText = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable ||
    target.matches("textarea, select, input:not([type=checkbox], [type=radio], [type=button])"));

/** A dialog or a menu has keys of its own. */
const isBehindDialog = (): boolean => document.querySelector("[role=dialog], [role=menu]") !== null;

/** Starts commands by their keys. */
export const useKeys = (): void => {
  const commands = useAllCommands();
  useEffect(() => {
    const bindings = commands.flatMap((command) => (command.keys === undefined ? [] : [command]));
    return tinykeys(
      window,
      Object.fromEntries(
        bindings.map(({ keys = "", worksInText = false, isOnce = false, run }) => [
          keys,
          (event: KeyboardEvent) => {
            if (event.defaultPrevented || event.isComposing || isBehindDialog()) return;
            if (!worksInText && isText(event.target)) return;
            if (isOnce && event.repeat) return;
            event.preventDefault();
            run();
          },
        ]),
      ),
    );
  }, [commands]);
};
