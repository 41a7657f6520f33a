/*
 * Reloads the page if one of its files is missing. While servers are replaced one by one, the page may come from one version and the request
 * for a file may reach another. So this script requests each missing file until it arrives: the browser keeps the file for ever, and the
 * reloaded page finds it. This script has the same name in each version.
 */
(() => {
  const STORED = "threadloom-loads";
  /** A try costs 2, or 1 if all files arrived. After a minute the count starts again. */
  const SPENT_AT_MOST = 12;
  const FORGOTTEN_MS = 60_000;
  const ASKED_AT_MOST = 6;

  const addresses = () => {
    const named = [...document.querySelectorAll("script[src], link[href]")].map(
      ({ src, href }) => src ?? href,
    );
    const asked = performance.getEntriesByType("resource").map(({ name }) => name);
    return new Set([...named, ...asked].filter((address) => new URL(address).pathname.includes("/assets/")));
  };

  /**
   * One after the other, so that a balancer that takes turns sends the next try elsewhere; what is there is read from the cache. Tells
   * whether all came.
   */
  const fetchAll = async () => {
    let missing = 0;
    for (const address of addresses()) {
      let answer;
      for (let tries = 0; tries < ASKED_AT_MOST && answer?.ok !== true; tries += 1) {
        answer = await fetch(address).catch(() => undefined);
        await answer?.arrayBuffer().catch(() => undefined);
      }
      if (answer?.ok !== true) missing += 1;
    }
    return missing === 0;
  };

  let isAtWork = false;

  const loadAgain = async () => {
    // Two missing parts are one round: the page is loaded again for both.
    if (isAtWork) return;
    isAtWork = true;
    const [stored, since] = (sessionStorage.getItem(STORED) ?? "0 0").split(" ").map(Number);
    const spent = Date.now() - since < FORGOTTEN_MS ? stored : 0;
    if (spent >= SPENT_AT_MOST) return;
    const isComplete = await fetchAll();
    sessionStorage.setItem(STORED, `${spent + (isComplete ? 1 : 2)} ${Date.now()}`);
    // A file that no server has is gone, or servers are away: the page is another one by now, or will be.
    if (!isComplete) await new Promise((resolve) => setTimeout(resolve, 250 * 2 ** (spent / 2)));
    location.reload();
  };

  // Of a part that is loaded when somebody opens it (src/shell/error-boundary.tsx).
  addEventListener("threadloom:unloaded", loadAgain);

  // This runs when the page's own code has run, or could not be loaded.
  const hasBegun = document.documentElement.dataset.console === "begun";
  const sheets = [...document.querySelectorAll('link[rel="stylesheet"]')];
  if (!hasBegun || sheets.some(({ sheet }) => sheet === null)) loadAgain();
})();
