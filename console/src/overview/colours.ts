import { useSyncExternalStore } from "react";

/** So that two series of one chart never differ by colour alone. */
export type Pattern = "solid" | "stripes" | "dots";

export interface Look {
  /** A token of design/tokens.css without its dashes, e.g. `good`. */
  token: string;
  pattern: Pattern;
}

const subscribe = (onChange: () => void): (() => void) => {
  const observer = new MutationObserver(onChange);
  observer.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", onChange);
  return () => {
    observer.disconnect();
    system.removeEventListener("change", onChange);
  };
};

/** Changes with the theme. */
export const useTextColour = (): string =>
  useSyncExternalStore(subscribe, () => getComputedStyle(document.body).color);

/** The tokens use `light-dark()`, which a canvas does not understand. */
export const colourOf = (place: HTMLElement, token: string): string => {
  const probe = document.createElement("span");
  probe.style.color = `var(--${token})`;
  place.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
};

const TILE = 8;
const OPACITY = 0.85;
const OPACITY_BETWEEN = 0.35;

export const fillOf = (place: HTMLElement, { token, pattern }: Look): string | CanvasPattern => {
  const colour = colourOf(place, token);
  const tile = document.createElement("canvas");
  tile.width = TILE;
  tile.height = TILE;
  const context = tile.getContext("2d");
  if (context === null) return colour;
  context.fillStyle = colour;
  context.globalAlpha = pattern === "solid" ? OPACITY : OPACITY_BETWEEN;
  context.fillRect(0, 0, TILE, TILE);
  context.globalAlpha = OPACITY;
  if (pattern === "dots") {
    for (const at of [TILE / 4, (TILE * 3) / 4]) {
      context.beginPath();
      context.arc(at, at, TILE / 5, 0, 2 * Math.PI);
      context.fill();
    }
  } else if (pattern === "stripes") {
    context.strokeStyle = colour;
    context.lineWidth = 2.5;
    for (const shift of [-TILE, 0, TILE]) {
      context.beginPath();
      context.moveTo(shift, TILE);
      context.lineTo(shift + TILE, 0);
      context.stroke();
    }
  }
  return context.createPattern(tile, "repeat") ?? colour;
};
