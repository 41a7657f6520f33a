/** Buttons that change data. */
const ACTIONS = "button.primary, button.danger";

/**
 * React disables a button only after the next render, so the second click of a double click would create a
 * second assistant, version or run. Clicks of the keyboard have `detail` 0 and pass.
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
