import cronstrue from "cronstrue";

const FIELDS = 5;

/** What a schedule says, in words; undefined if it can't be read, or only by a server: those have five fields or a name. */
export const scheduleWords = (schedule: string): string | undefined => {
  const text = schedule.trim();
  if (!text.startsWith("@") && text.split(/\s+/).length !== FIELDS) return undefined;
  try {
    return cronstrue.toString(text, { use24HourTimeFormat: true, verbose: false });
  } catch {
    return undefined;
  }
};
