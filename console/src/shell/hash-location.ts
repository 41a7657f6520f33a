import { useSyncExternalStore } from "react";
import type { BaseLocationHook } from "wouter";

/**
 * Places behind the `#` with a search part of their own: `#/runs?status=error`. wouter's own hook writes the search in front of the `#`,
 * where it is a request to the server and stays as one goes from page to page.
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
  // The browser tells of what people and links change, not of this.
  dispatchEvent(new HashChangeEvent("hashchange", { oldURL, newURL: location.href }));
};

const useHashSearch = (): string => useSyncExternalStore(subscribe, searchOf);

/** For wouter's `Router`: `useLocation` has the path, `useSearch` and `useSearchParams` what is behind the `?`. */
export const useHashLocation: BaseLocationHook = Object.assign(
  (): [string, typeof navigate] => [useSyncExternalStore(subscribe, pathOf), navigate],
  {
    hrefs: (href: string) => `#${href}`,
    searchHook: useHashSearch,
  },
);
