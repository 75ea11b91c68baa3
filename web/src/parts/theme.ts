// theme.ts - the page's colours for what is drawn on a canvas.
//
// The style sheet holds them, light and dark; here they are looked up by name, and whoever
// drew with them hears when they change.  On paper the page is light, and narrower.

/** How wide a chart is on paper: A4 and US letter have room for it. */
export const PAPER_WIDTH = 660;

const root = document.documentElement;
const watchers: (() => void)[] = [];
let known = new Map<string, string>();

function changed(): void {
  known = new Map();
  for (const watcher of watchers) watcher();
}

/** The value of the custom property --name. */
export function colour(name: string): string {
  let value = known.get(name);
  if (value === undefined) {
    value = getComputedStyle(root).getPropertyValue(`--${name}`).trim();
    known.set(name, value);
  }
  return value;
}

export function isDark(): boolean {
  return colour("scheme") === "dark";
}

export function isPrinting(): boolean {
  return root.classList.contains("printing");
}

export function onThemeChange(watcher: () => void): void {
  watchers.push(watcher);
}

window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
window.addEventListener("beforeprint", () => {
  root.classList.add("printing");
  changed();
});
window.addEventListener("afterprint", () => {
  root.classList.remove("printing");
  changed();
});
