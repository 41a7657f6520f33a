import { useEffect, useState } from "react";

const STORED = "threadloom-theme";
const THEMES = ["system", "light", "dark"] as const;
type Theme = (typeof THEMES)[number];

const isTheme = (text: string | null): text is Theme => (THEMES as readonly (string | null)[]).includes(text);

const storedTheme = (): Theme => {
  const stored = localStorage.getItem(STORED);
  return isTheme(stored) ? stored : "system";
};

export const ThemeChoice = () => {
  const [theme, setTheme] = useState(storedTheme);
  useEffect(() => {
    if (theme === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme;
    localStorage.setItem(STORED, theme);
  }, [theme]);
  return (
    <label>
      <span className="unseen">Colours</span>
      <select
        value={theme}
        onChange={({ target }) => {
          if (isTheme(target.value)) setTheme(target.value);
        }}
      >
        <option value="system">System colours</option>
        <option value="light">Light</option>
        <option value="dark">Dark</option>
      </select>
    </label>
  );
};
