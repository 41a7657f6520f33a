import { useEffect } from "react";
import { matchRoute, useLocation, useRouter } from "wouter";
import { PAGES } from "./pages.ts";

/** Loads the code of the page while the server checks the credentials. */
export const PreloadPage = (): null => {
  const [location] = useLocation();
  const { parser } = useRouter();
  useEffect(() => {
    const page = PAGES.find(({ pattern, path }) => matchRoute(parser, pattern ?? path, location)[0]);
    // The page itself reports the failure.
    page?.load().catch(() => undefined);
  }, [location, parser]);
  return null;
};
