/** ISO 8601 in UTC with milliseconds and a written offset, as clients expect it. */
export const timestamp = (time: Date): string => `${time.toISOString().slice(0, -1)}+00:00`;
