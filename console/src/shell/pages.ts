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
  /** Undefined: only other pages link to this one. */
  navigation?: { icon: LucideIcon; group: "Work" | "Build" | "Operate"; isInBottomBar?: true };
  /** Whether the page fills the window and scrolls inside itself. */
  fillsWindow?: true;
}

export const PAGES: readonly Page[] = [
  {
    path: "/",
    pattern: /^\/(?:threads\/(?<threadId>[^/]+))?$/,
    title: "Playground",
    navigation: { icon: MessagesSquare, group: "Work", isInBottomBar: true },
    fillsWindow: true,
    component: lazy(() => import("../playground/playground-page.tsx")),
  },
  {
    path: "/threads/:threadId/history",
    title: "Time travel",
    component: lazy(() => import("../history/history-page.tsx")),
  },
  {
    path: "/inbox/:threadId?",
    title: "Inbox",
    navigation: { icon: Inbox, group: "Work", isInBottomBar: true },
    fillsWindow: true,
    component: lazy(() => import("../inbox/inbox-page.tsx")),
  },
  {
    path: "/graph/:assistantId?",
    title: "Graph",
    navigation: { icon: Workflow, group: "Build" },
    component: lazy(() => import("../graph/graph-page.tsx")),
  },
  {
    path: "/assistants/:assistantId?",
    title: "Assistants",
    navigation: { icon: Bot, group: "Build", isInBottomBar: true },
    component: lazy(() => import("../assistants/assistants-page.tsx")),
  },
  {
    path: "/overview",
    title: "Overview",
    navigation: { icon: LayoutDashboard, group: "Operate" },
    component: lazy(() => import("../overview/overview-page.tsx")),
  },
  {
    path: "/runs/compare",
    title: "Compare runs",
    component: lazy(() => import("../runs/compare-page.tsx")),
  },
  {
    path: "/runs/:runId",
    title: "Run",
    fillsWindow: true,
    component: lazy(() => import("../runs/run-page.tsx")),
  },
  {
    path: "/runs",
    title: "Runs",
    navigation: { icon: Play, group: "Operate", isInBottomBar: true },
    component: lazy(() => import("../runs/runs-page.tsx")),
  },
  {
    path: "/queue",
    title: "Queue",
    navigation: { icon: ListOrdered, group: "Operate" },
    component: lazy(() => import("../queue/queue-page.tsx")),
  },
  {
    path: "/crons",
    title: "Crons",
    navigation: { icon: Clock, group: "Operate" },
    component: lazy(() => import("../crons/crons-page.tsx")),
  },
  {
    path: "/store",
    title: "Store",
    navigation: { icon: Database, group: "Build" },
    component: lazy(() => import("../store/store-page.tsx")),
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
