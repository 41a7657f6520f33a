import { lazy, type ComponentType, type LazyExoticComponent } from "react";

export interface Page {
  path: string;
  title: string;
  /** Undefined: only other pages link to this one. */
  navigation?: string;
  component: LazyExoticComponent<ComponentType>;
}

export const PAGES: readonly Page[] = [
  {
    path: "/",
    title: "Playground",
    navigation: "Playground",
    component: lazy(() => import("../playground/playground-page.tsx")),
  },
  {
    path: "/threads/:threadId",
    title: "Playground",
    component: lazy(() => import("../playground/playground-page.tsx")),
  },
  {
    path: "/threads/:threadId/history",
    title: "Time travel",
    component: lazy(() => import("../history/history-page.tsx")),
  },
  {
    path: "/graph/:assistantId?",
    title: "Graph",
    navigation: "Graph",
    component: lazy(() => import("../graph/graph-page.tsx")),
  },
  {
    path: "/assistants/:assistantId?",
    title: "Assistants",
    navigation: "Assistants",
    component: lazy(() => import("../assistants/assistants-page.tsx")),
  },
  {
    path: "/runs",
    title: "Runs",
    navigation: "Runs",
    component: lazy(() => import("../runs/runs-page.tsx")),
  },
  {
    path: "/queue",
    title: "Queue",
    navigation: "Queue",
    component: lazy(() => import("../queue/queue-page.tsx")),
  },
  {
    path: "/crons",
    title: "Crons",
    navigation: "Crons",
    component: lazy(() => import("../crons/crons-page.tsx")),
  },
  {
    path: "/store",
    title: "Store",
    navigation: "Store",
    component: lazy(() => import("../store/store-page.tsx")),
  },
];
