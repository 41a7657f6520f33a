import { createContext, useContext, useEffect, useMemo, useSyncExternalStore, type ReactNode } from "react";

/** An action of the command palette, which a key may also start. */
export interface Command {
  /** A verb first, e.g. `New thread`. */
  label: string;
  /** The heading in the palette and in the list of keys, e.g. `Thread`. */
  group: string;
  /** If several commands of a group may have one label. */
  id?: string;
  /** As tinykeys writes it: `n`, `Shift+?`, `$mod+k`. */
  keys?: string;
  /** Whether `keys` also work while a text is written. */
  worksInText?: boolean;
  /** Whether a key that is held runs the command only once. */
  isOnce?: boolean;
  run(): void;
}

interface CommandRegistry {
  add(commands: readonly Command[]): () => void;
  subscribe(onChange: () => void): () => void;
  current(): readonly Command[];
}

const createRegistry = (): CommandRegistry => {
  const added = new Set<readonly Command[]>();
  const listeners = new Set<() => void>();
  let all: readonly Command[] = [];
  const update = (): void => {
    all = [...added].flat();
    for (const notify of listeners) notify();
  };
  return {
    add(commands) {
      added.add(commands);
      update();
      return () => {
        added.delete(commands);
        update();
      };
    },
    subscribe(onChange) {
      listeners.add(onChange);
      return () => listeners.delete(onChange);
    },
    current: () => all,
  };
};

const RegistryContext = createContext<CommandRegistry | undefined>(undefined);

const useRegistry = (): CommandRegistry => {
  const registry = useContext(RegistryContext);
  if (registry === undefined) throw new Error("There are no commands above this component.");
  return registry;
};

export const CommandsProvider = ({ children }: { children: ReactNode }) => {
  const registry = useMemo(() => createRegistry(), []);
  return <RegistryContext.Provider value={registry}>{children}</RegistryContext.Provider>;
};

/** Offers commands while the caller is mounted. @param commands the same array until they change */
export const useCommands = (commands: readonly Command[]): void => {
  const registry = useRegistry();
  useEffect(() => registry.add(commands), [registry, commands]);
};

export const useAllCommands = (): readonly Command[] => {
  const { subscribe, current } = useRegistry();
  return useSyncExternalStore(subscribe, current);
};

const isMac = /mac|iphone|ipad/i.test(navigator.userAgent);
const NAMES: ReadonlyMap<string, string> = new Map([
  ["$mod", isMac ? "⌘" : "Ctrl"],
  ["Escape", "Esc"],
  ["Shift+?", "?"],
  ["ArrowUp", "↑"],
  ["ArrowDown", "↓"],
]);

/** As people read it, e.g. `Ctrl K`. */
export const keysText = (keys: string): string =>
  NAMES.get(keys) ??
  keys
    .split("+")
    .map((key) => NAMES.get(key) ?? (key.length === 1 ? key.toUpperCase() : key))
    .join(" ");
