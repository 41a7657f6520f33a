import { lazy, Suspense, useEffect, useMemo, useRef, useState } from "react";
import { FileQuestion } from "lucide-react";
import { Link, Route, Switch, useLocation } from "wouter";
import { EmptyState } from "../design/empty-state.tsx";
import { Skeleton } from "../design/skeleton.tsx";
import { TooltipProvider } from "../design/tooltip.tsx";
import { CommandsProvider, useCommands, type Command } from "../parts/commands.tsx";
import { useCounts } from "./counts.ts";
import { ErrorBoundary } from "./error-boundary.tsx";
import { useKeys } from "./keys.ts";
import { BottomNavigation, SideNavigation } from "./navigation.tsx";
import { addressOf, PAGES, type Page } from "./pages.ts";
import { THEME_NAMES, useTheme } from "./theme.ts";
import styles from "./shell.module.css";

const Palette = lazy(() => import("./palette.tsx"));
const KeysDialog = lazy(() => import("./keys-dialog.tsx"));

const PageFrame = ({ page }: { page: Page }) => {
  const main = useRef<HTMLElement>(null);
  useEffect(() => {
    document.title = `${page.title} – Threadloom`;
    if (document.activeElement === document.body) main.current?.focus({ preventScroll: true });
  }, [page]);
  return (
    <main
      ref={main}
      id="main"
      tabIndex={-1}
      className={page.fillsWindow === true ? styles.filled : styles.main}
    >
      <ErrorBoundary reloadsPage>
        <Suspense
          fallback={
            <div className={styles.loading}>
              <Skeleton lines={6} />
            </div>
          }
        >
          <page.component />
        </Suspense>
      </ErrorBoundary>
    </main>
  );
};

/** Apart, because commands change often. */
const Keys = (): null => {
  useKeys();
  return null;
};

const Frame = () => {
  const [location, navigate] = useLocation();
  const { theme, next, change } = useTheme();
  const [open, setOpen] = useState<"palette" | "keys">();
  const commands = useMemo<Command[]>(
    () => [
      {
        label: "Show all commands",
        group: "Console",
        keys: "$mod+k",
        worksInText: true,
        run: () => setOpen("palette"),
      },
      { label: "Show keyboard shortcuts", group: "Console", keys: "Shift+?", run: () => setOpen("keys") },
      { label: `Use ${THEME_NAMES[next].toLowerCase()}`, group: "Console", run: change },
      ...PAGES.filter(({ navigation }) => navigation !== undefined).map((page) => ({
        label: `Go to ${page.title}`,
        group: "Pages",
        run: () => navigate(addressOf(page)),
      })),
    ],
    // eslint-disable-next-line react-hooks/exhaustive-deps -- `change` belongs to `next`.
    [next, navigate],
  );
  useCommands(commands);
  const counts = useCounts();
  const navigation = {
    counts,
    theme,
    onTheme: change,
    onPalette: () => setOpen("palette"),
    onKeys: () => setOpen("keys"),
  };
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
      <Keys />
      <SideNavigation {...navigation} />
      <Switch>
        {PAGES.map((page) => (
          <Route key={page.path} path={page.pattern ?? page.path}>
            <PageFrame page={page} />
          </Route>
        ))}
        <Route>
          <main id="main" tabIndex={-1} className={styles.main}>
            <EmptyState
              icon={FileQuestion}
              title="This page does not exist"
              action={<Link href="/">Go to the playground</Link>}
            >
              The console has no page at {location}.
            </EmptyState>
          </main>
        </Route>
      </Switch>
      <BottomNavigation {...navigation} />
      {open !== undefined && (
        <Suspense>
          {open === "palette" ? (
            <Palette onClose={() => setOpen((now) => (now === "palette" ? undefined : now))} />
          ) : (
            <KeysDialog onClose={() => setOpen(undefined)} />
          )}
        </Suspense>
      )}
    </div>
  );
};

export const Shell = () => (
  <CommandsProvider>
    <TooltipProvider delay={400}>
      <Frame />
    </TooltipProvider>
  </CommandsProvider>
);
