import cronstrue from "cronstrue";

const FIELDS = 5;

/** Undefined if invalid. cronstrue accepts more formats than the server. */
export const scheduleWords = (schedule: string): string | undefined => {
  const text = schedule.trim();
  if (!text.startsWith("@") && text.split(/\s+/).length !== FIELDS) return undefined;
  try {
    return cronstrue.toString(text, { use24HourTimeFormat: true, verbose: false });
  } catch {
    return undefined;
  }
};
