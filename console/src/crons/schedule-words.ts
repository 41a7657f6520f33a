import cronstrue from "cronstrue";

const FIELDS = 5;

/**
 * Undefined if the schedule is invalid. The server takes only five fields or a name, cronstrue also takes
 * others.
 */
export const scheduleWords = (schedule: string): string | undefined => {
  const text = schedule.trim();
  if (!text.startsWith("@") && text.split(/\s+/).length !== FIELDS) return undefined;
  try {
    return cronstrue.toString(text, { use24HourTimeFormat: true, verbose: false });
  } catch {
    return undefined;
  }
};
