/** Names that come from outside: a caller's keys, channels and nodes. */

/**
 * True for what every plain object has without having been given it, like `constructor`. LangGraph looks up channels
 * and nodes in plain objects, so such a name breaks it (1.4.18: `pendingWritesByChannel[chan].push is not a function`).
 */
export const isInherited = (name: string): boolean => name in Object.prototype;

/** What an object holds itself under a name; undefined for what it only inherits. */
export const ownField = <Value>(
  object: Readonly<Record<string, Value>> | undefined,
  name: string,
): Value | undefined => (object !== undefined && Object.hasOwn(object, name) ? object[name] : undefined);
