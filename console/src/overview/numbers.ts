const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** E.g. `1,204`. */
export const countText = (count: number): string => whole.format(count);

/** E.g. `1.2M`. */
export const shortText = (count: number): string => short.format(count);

const SHOWN_FROM_PERCENT = 0.1;

/** E.g. `0.4 %`; `–` without a whole. */
export const shareText = (part: number, all: number): string => {
  if (all === 0) return "–";
  const percent = (part / all) * 100;
  if (percent > 0 && percent < SHOWN_FROM_PERCENT) return `< ${SHOWN_FROM_PERCENT} %`;
  return `${percent > 0 && percent < 10 ? percent.toFixed(1) : Math.round(percent)} %`;
};

/** The currency is a name that the project chose. */
export const costText = (cost: number, currency: string): string =>
  `${cost.toLocaleString("en", { maximumFractionDigits: cost < 1 ? 4 : 2, minimumFractionDigits: 2 })} ${currency}`;

const hourOfDay = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const dayAndHour = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});
const dayOnly = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

export const hourText = (iso: string, isWithinDay: boolean): string =>
  (isWithinDay ? hourOfDay : dayAndHour).format(new Date(iso));

/** @param day of UTC, e.g. `2026-11-26` */
export const dayText = (day: string): string => dayOnly.format(new Date(day));
