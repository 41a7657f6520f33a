/** As in `{$type: "date", value: …}`. */
export const TYPE = "$type";
