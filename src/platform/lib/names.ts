/**
 * True for names that every plain object inherits, as `constructor`. LangGraph looks up channels and nodes in plain
 * objects and fails (1.4.18: `pendingWritesByChannel[chan].push is not a function`).
 */
export const isInherited = (name: string): boolean => name in Object.prototype;

export const ownField = <Value>(
  object: Readonly<Record<string, Value>> | undefined,
  name: string,
): Value | undefined => (object !== undefined && Object.hasOwn(object, name) ? object[name] : undefined);
