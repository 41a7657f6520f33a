import { useSyncExternalStore } from "react";
import type { BaseLocationHook } from "wouter";

/**
 * Locations after the `#` with a query of their own: `#/runs?status=error`. wouter's own hook writes the
 * query before the `#`, where the browser sends it to the server.
 */

const current = (): string => location.hash.replace(/^#?\/?/, "/");
const pathOf = (): string => current().split("?", 1)[0] ?? "/";
const searchOf = (): string => {
  const hash = current();
  const start = hash.indexOf("?");
  return start < 0 ? "" : hash.slice(start);
};

const subscribe = (onChange: () => void): (() => void) => {
  addEventListener("hashchange", onChange);
  return () => removeEventListener("hashchange", onChange);
};

const navigate = (
  to: string,
  { state = null, replace = false }: { state?: unknown; replace?: boolean } = {},
): void => {
  const oldURL = location.href;
  const hash = `#${to.replace(/^#?\/?/, "/")}`;
  if (replace) history.replaceState(state, "", hash);
  else history.pushState(state, "", hash);
  // `pushState` and `replaceState` dispatch no event.
  dispatchEvent(new HashChangeEvent("hashchange", { oldURL, newURL: location.href }));
};

const useHashSearch = (): string => useSyncExternalStore(subscribe, searchOf);

export const useHashLocation: BaseLocationHook = Object.assign(
  (): [string, typeof navigate] => [useSyncExternalStore(subscribe, pathOf), navigate],
  {
    hrefs: (href: string) => `#${href}`,
    searchHook: useHashSearch,
  },
);
