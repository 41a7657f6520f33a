/** A time as clients see it: ISO 8601 in UTC, with the offset written out, milliseconds. */
export const timestamp = (time: Date): string => `${time.toISOString().slice(0, -1)}+00:00`;
