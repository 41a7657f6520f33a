/** Texts that outlive the page, in the session storage of the tab: drafts, for example. */
const PREFIX = "threadloom-kept:";
const ENTRIES_AT_MOST = 40;
const CHARACTERS_AT_MOST = 200_000;

interface Entry {
  /** Milliseconds since 1970. */
  at: number;
  text: string;
}

const entryOf = (key: string): Entry | undefined => {
  try {
    const entry = JSON.parse(sessionStorage.getItem(key) ?? "null") as Partial<Entry> | null;
    return typeof entry?.text === "string" ? { at: Number(entry.at), text: entry.text } : undefined;
  } catch {
    return undefined;
  }
};

const keys = (): string[] => Object.keys(sessionStorage).filter((key) => key.startsWith(PREFIX));

export const keptText = (name: string): string | undefined => entryOf(PREFIX + name)?.text;

/** An empty or a very long text is forgotten, and the oldest texts if there are too many. */
export const keepText = (name: string, text: string): void => {
  const key = PREFIX + name;
  if (text === "" || text.length > CHARACTERS_AT_MOST) return sessionStorage.removeItem(key);
  const others = keys().filter((other) => other !== key);
  if (others.length >= ENTRIES_AT_MOST) {
    const age = new Map(others.map((other) => [other, entryOf(other)?.at ?? 0]));
    const oldest = others.sort((one, other) => (age.get(one) ?? 0) - (age.get(other) ?? 0));
    for (const other of oldest.slice(0, others.length - ENTRIES_AT_MOST + 1))
      sessionStorage.removeItem(other);
  }
  try {
    sessionStorage.setItem(key, JSON.stringify({ at: Date.now(), text } satisfies Entry));
  } catch {
    // The storage is full; the text is still on the screen.
  }
};

/** The next user must not see the texts of this one. */
export const forgetTexts = (): void => {
  for (const key of keys()) sessionStorage.removeItem(key);
};
