/** What changes something, as theme.css shows it. */
const ACTIONS = "button.primary, button.danger";

/**
 * Whoever clicks twice where once would do wants one assistant, one version, one run: the second click of two comes before React has drawn
 * that the first one is at work. The keyboard's clicks are no such ones.
 */
export const ignoreSecondClicks = (): void => {
  document.addEventListener(
    "click",
    (event) => {
      const { detail, target } = event;
      if (detail < 2 || !(target instanceof Element) || target.closest(ACTIONS) === null) return;
      event.preventDefault();
      event.stopImmediatePropagation();
    },
    { capture: true },
  );
};
