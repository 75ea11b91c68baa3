// theme.ts - light or dark, and the page's colours for what is drawn on a canvas.
//
// As the system says, unless somebody chose otherwise.  The style sheet holds the colours; here
// they are looked up by name, and whoever drew with them hears when they change.  On paper the
// page is light, and narrower.

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

export type Choice = "auto" | "light" | "dark";

const KEY = "berth-theme";
const system = window.matchMedia("(prefers-color-scheme: dark)");
let choice: Choice = "auto";

/** What was chosen the last time; a page from a file may not be allowed to remember. */
function remembered(): Choice {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "auto";
  } catch {
    return "auto";
  }
}

function apply(): void {
  root.dataset["theme"] = choice === "auto" ? (system.matches ? "dark" : "light") : choice;
  changed();
}

export function themeChoice(): Choice {
  return choice;
}

export function chooseTheme(next: Choice): void {
  choice = next;
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // Then it holds for this page only.
  }
  apply();
}

choice = remembered();
apply();
system.addEventListener("change", apply);
window.addEventListener("beforeprint", () => {
  root.classList.add("printing");
  changed();
});
window.addEventListener("afterprint", () => {
  root.classList.remove("printing");
  changed();
});
