import { Monitor, Moon, Sun, type LucideIcon } from "lucide-react";
import { useEffect, useState } from "react";

const STORED = "threadloom-theme";
const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

export const THEME_ICONS: Readonly<Record<Theme, LucideIcon>> = { system: Monitor, light: Sun, dark: Moon };
export const THEME_NAMES: Readonly<Record<Theme, string>> = {
  system: "System colours",
  light: "Light colours",
  dark: "Dark colours",
};

const isTheme = (text: string | null): text is Theme => (THEMES as readonly (string | null)[]).includes(text);

const storedTheme = (): Theme => {
  const stored = localStorage.getItem(STORED);
  return isTheme(stored) ? stored : "system";
};

/** The colours of the console, and how to change to the next ones. */
export const useTheme = (): { theme: Theme; next: Theme; change(): void } => {
  const [theme, setTheme] = useState(storedTheme);
  useEffect(() => {
    if (theme === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
    localStorage.setItem(STORED, theme);
  }, [theme]);
  const next = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length] ?? "system";
  return { theme, next, change: () => setTheme(next) };
};
