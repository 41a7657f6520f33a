/*
 * Loads the page again where one of its files is missing. While servers are replaced one by one, the page may come from one version and a
 * file that it names be asked of another, which has none of that name. What was loaded once is kept by the browser for ever, so each try
 * gets further. This file has the same name in each version, and is small enough to stay what it is.
 */
(() => {
  const STORED = "threadloom-loads";
  /** After waits of 250 ms, 500 ms … 8 s, and then anew for whoever comes back later. */
  const TRIES_AT_MOST = 6;
  const FORGOTTEN_MS = 60_000;

  const loadAgain = () => {
    const [stored, since] = (sessionStorage.getItem(STORED) ?? "0 0").split(" ").map(Number);
    const tries = Date.now() - since < FORGOTTEN_MS ? stored : 0;
    if (tries >= TRIES_AT_MOST) return;
    sessionStorage.setItem(STORED, `${tries + 1} ${Date.now()}`);
    setTimeout(() => location.reload(), 250 * 2 ** tries);
  };

  // Of a part that is loaded when somebody opens it (src/shell/fault-boundary.tsx).
  addEventListener("threadloom:unloaded", loadAgain);

  // This runs when the page's own code has run, or could not be loaded.
  const hasBegun = document.documentElement.dataset.console === "begun";
  const sheets = [...document.querySelectorAll('link[rel="stylesheet"]')];
  if (!hasBegun || sheets.some(({ sheet }) => sheet === null)) loadAgain();
})();
