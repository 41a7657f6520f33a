/** The key of a stored tree that names a type: `{$type: "date", value: …}`. */
export const TYPE = "$type";
