import { Suspense, useEffect, useRef } from "react";
import { Link, Route, Switch, useLocation } from "wouter";
import { documentationUrl } from "../server/address.ts";
import { useConnection } from "../server/connection.tsx";
import { ErrorBoundary } from "./error-boundary.tsx";
import { PAGES, type Page } from "./pages.ts";
import { useSignOut } from "./sign-out.ts";
import { ThemeChoice } from "./theme-choice.tsx";
import styles from "./shell.module.css";

/** The playground also shows `/threads/…`. */
const isCurrent = ({ path }: Page, location: string): boolean => {
  const start = path.split("/:", 1)[0] ?? path;
  return start === "/"
    ? location === "/" || location.startsWith("/threads/")
    : location === start || location.startsWith(`${start}/`);
};

const PageFrame = ({ page }: { page: Page }) => {
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    document.title = `${page.title} – Threadloom`;
    if (document.activeElement === document.body) main.current?.focus({ preventScroll: true });
  }, [page]);
  return (
    <main ref={main} id="main" tabIndex={-1} className={styles.main}>
      <ErrorBoundary reloadsPage>
        <Suspense fallback={<p className={styles.loading}>Loading…</p>}>
          <page.component />
        </Suspense>
      </ErrorBoundary>
    </main>
  );
};

export const Shell = () => {
  const [location] = useLocation();
  const { info } = useConnection();
  const signOut = useSignOut();
  return (
    <div className={styles.shell}>
      <a
        className={styles.skip}
        href="#main"
        onClick={(event) => {
          // The hash is the location of the page.
          event.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        Skip to the page
      </a>
      <header className={styles.header}>
        <p className={styles.name}>
          Threadloom <span className="faint">{info.threadloom_version}</span>
        </p>
        <nav aria-label="Pages">
          <ul className={styles.pages}>
            {PAGES.filter(({ navigation }) => navigation !== undefined).map((page) => (
              <li key={page.path}>
                <Link
                  href={page.path.split("/:", 1)[0] ?? "/"}
                  aria-current={isCurrent(page, location) ? "page" : undefined}
                >
                  {page.navigation}
                </Link>
              </li>
            ))}
            <li>
              <a href={documentationUrl}>API</a>
            </li>
          </ul>
        </nav>
        <div className={styles.settings}>
          <ThemeChoice />
          {signOut !== undefined && (
            <button type="button" className="plain" onClick={signOut.signOut}>
              Forget the {signOut.noun}
            </button>
          )}
        </div>
      </header>
      <Switch>
        {PAGES.map((page) => (
          <Route key={page.path} path={page.path}>
            <PageFrame page={page} />
          </Route>
        ))}
        <Route>
          <main id="main" tabIndex={-1} className={styles.main}>
            <h1>This page does not exist</h1>
            <p>
              <Link href="/">Go to the playground</Link>
            </p>
          </main>
        </Route>
      </Switch>
    </div>
  );
};
