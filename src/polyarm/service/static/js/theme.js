// Colours for what CSS cannot paint (canvas), from the properties of theme.css, and news when they change.

/** The colour that a custom property has now. */
export function colour(property) {
  return getComputedStyle(document.documentElement).getPropertyValue(property).trim();
}

/** Calls back when the reader switches between light and dark. */
export function onThemeChange(listener, signal) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", listener, { signal });
}

const SERIES = 6;

/** The property that holds the colour of the i-th of several lines. */
export function seriesProperty(index) {
  return `--series-${(index % SERIES) + 1}`;
}
