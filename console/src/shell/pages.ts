import {
  Bot,
  Clock,
  Database,
  Inbox,
  LayoutDashboard,
  ListOrdered,
  MessagesSquare,
  Play,
  Workflow,
  type LucideIcon,
} from "lucide-react";
import { lazy, type ComponentType, type LazyExoticComponent } from "react";

export interface Page {
  path: string;
  /** If the page has more than one path; one route keeps the page while its path changes. */
  pattern?: RegExp;
  title: string;
  component: LazyExoticComponent<ComponentType>;
  /** Begins to load the component, or answers the one that is loaded. */
  load(): Promise<unknown>;
  /** Undefined: only other pages link to this one. */
  navigation?: { icon: LucideIcon; group: "Work" | "Build" | "Operate"; isInBottomBar?: true };
  /** Whether the page fills the window and scrolls inside itself. */
  fillsWindow?: true;
}

const loaded = (load: () => Promise<{ default: ComponentType }>): Pick<Page, "component" | "load"> => ({
  component: lazy(load),
  load,
});

export const PAGES: readonly Page[] = [
  {
    path: "/",
    pattern: /^\/(?:threads\/(?<threadId>[^/]+))?$/,
    title: "Playground",
    navigation: { icon: MessagesSquare, group: "Work", isInBottomBar: true },
    fillsWindow: true,
    ...loaded(() => import("../playground/playground-page.tsx")),
  },
  {
    path: "/threads/:threadId/history",
    title: "Time travel",
    ...loaded(() => import("../history/history-page.tsx")),
  },
  {
    path: "/inbox/:threadId?",
    title: "Inbox",
    navigation: { icon: Inbox, group: "Work", isInBottomBar: true },
    fillsWindow: true,
    ...loaded(() => import("../inbox/inbox-page.tsx")),
  },
  {
    path: "/graph/:assistantId?",
    title: "Graph",
    navigation: { icon: Workflow, group: "Build" },
    ...loaded(() => import("../graph/graph-page.tsx")),
  },
  {
    path: "/assistants/:assistantId?",
    title: "Assistants",
    navigation: { icon: Bot, group: "Build", isInBottomBar: true },
    ...loaded(() => import("../assistants/assistants-page.tsx")),
  },
  {
    path: "/overview",
    title: "Overview",
    navigation: { icon: LayoutDashboard, group: "Operate" },
    ...loaded(() => import("../overview/overview-page.tsx")),
  },
  {
    path: "/runs/compare",
    title: "Compare runs",
    ...loaded(() => import("../runs/compare-page.tsx")),
  },
  {
    path: "/runs/:runId",
    title: "Run",
    fillsWindow: true,
    ...loaded(() => import("../runs/run-page.tsx")),
  },
  {
    path: "/runs",
    title: "Runs",
    navigation: { icon: Play, group: "Operate", isInBottomBar: true },
    ...loaded(() => import("../runs/runs-page.tsx")),
  },
  {
    path: "/queue",
    title: "Queue",
    navigation: { icon: ListOrdered, group: "Operate" },
    ...loaded(() => import("../queue/queue-page.tsx")),
  },
  {
    path: "/crons",
    title: "Crons",
    navigation: { icon: Clock, group: "Operate" },
    ...loaded(() => import("../crons/crons-page.tsx")),
  },
  {
    path: "/store",
    title: "Store",
    navigation: { icon: Database, group: "Build" },
    ...loaded(() => import("../store/store-page.tsx")),
  },
];

/** Where a link to the page leads. */
export const addressOf = ({ path }: Page): string => path.split("/:", 1)[0] || "/";

/** Whether the page, or a page below it, is shown. The playground also shows `/threads/…`. */
export const isCurrent = (page: Page, location: string): boolean => {
  const start = addressOf(page);
  return start === "/"
    ? location === "/" || location.startsWith("/threads/")
    : location === start || location.startsWith(`${start}/`);
};
