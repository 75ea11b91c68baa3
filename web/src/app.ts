// app.ts - the dashboard: comes in, keeps the state up to date, shows one page at a time.

import { leave } from "./api";
import { Live, open } from "./live";
import { h } from "./parts/dom";
import { listen, helpDialog } from "./parts/keys";
import { chooseTheme, themeChoice, type Choice } from "./parts/theme";
import { clusterView } from "./views/cluster";
import { jobView } from "./views/job";
import { ledgerView } from "./views/ledger";
import { nowView } from "./views/now";
import { studyView } from "./views/study";
import type { Site, View } from "./views/view";

const PAGES: Record<string, { name: string; make(site: Site): View }> = {
  now: { name: "Now", make: nowView },
  cluster: { name: "Cluster", make: clusterView },
  ledger: { name: "Ledger", make: ledgerView },
  study: { name: "Study", make: studyView },
};

const THEMES: Record<Choice, { next: Choice; words: string; mark: string }> = {
  auto: { next: "light", words: "Colours: as the system says", mark: "◐" },
  light: { next: "dark", words: "Colours: light", mark: "☀" },
  dark: { next: "auto", words: "Colours: dark", mark: "☾" },
};

function themeButton(): HTMLElement {
  const button = h("button", { type: "button", class: "quiet", id: "theme" });
  const show = (): void => {
    const { words, mark } = THEMES[themeChoice()];
    button.textContent = mark;
    button.title = words;
    button.setAttribute("aria-label", words);
  };
  button.addEventListener("click", () => {
    chooseTheme(THEMES[themeChoice()].next);
    show();
  });
  show();
  return button;
}

/** Nothing of the cluster is shown, only how to get in. */
function door(reason: string): HTMLElement {
  return h(
    "main",
    { class: "door" },
    h("div", { class: "card" }, h("h1", {}, "Berth"), h("p", {}, reason), h("p", {}, "Run this on the machine where berthd runs:"), h("pre", {}, "berth ui")),
  );
}

class App implements Site {
  private view: View | undefined;
  private readonly main = h("main", { tabindex: "-1" });
  private readonly link = h("span", { class: "link", role: "status" });
  private readonly tabs = new Map<string, HTMLAnchorElement>();
  private readonly words = h("div", { class: "toast", role: "alert", hidden: true });
  private readonly help = helpDialog();
  private fading: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly live: Live) {}

  start(): void {
    for (const [path, { name }] of Object.entries(PAGES)) this.tabs.set(path, h("a", { href: `#/${path}` }, name));
    const out = h("button", { type: "button", class: "quiet", click: () => void this.out() }, "Leave");
    const ask = h("button", { type: "button", class: "quiet", "aria-label": "Keys", title: "Keys", click: () => this.help.showModal() }, "?");
    document.body.replaceChildren(
      h(
        "header",
        { class: "top-bar" },
        h("a", { class: "brand", href: "#/now" }, h("img", { src: "/icon.svg", alt: "", width: "22", height: "22" }), "Berth"),
        h("nav", { "aria-label": "Pages" }, ...this.tabs.values()),
        this.link,
        ask,
        themeButton(),
        out,
      ),
      this.main,
      this.words,
      this.help,
    );
    listen({ view: () => this.view, help: this.help, go: (page) => (location.hash = `#/${page}`) });
    window.addEventListener("hashchange", () => this.route());
    this.live.watch(() => this.update());
    setInterval(() => document.hidden || this.view?.tick?.(), 1000);
    this.route();
    void this.live.run();
  }

  openJob(id: number): void {
    location.hash = `#/job/${id}`;
  }

  say(sentence: string, bad = false): void {
    this.words.textContent = sentence;
    this.words.className = bad ? "toast bad" : "toast";
    this.words.hidden = false;
    clearTimeout(this.fading);
    this.fading = setTimeout(() => (this.words.hidden = true), bad ? 8000 : 4000);
  }

  private async out(): Promise<void> {
    await leave();
    location.reload();
  }

  private route(): void {
    const [page = "now", id = ""] = location.hash.replace(/^#\//, "").split("/");
    this.view?.close?.();
    const job = page === "job" && /^[1-9]\d{0,15}$/.test(id) ? Number(id) : undefined;
    this.view = job === undefined ? (PAGES[page] ?? PAGES["now"])?.make(this) : jobView(this, job);
    for (const [path, tab] of this.tabs) {
      if (path === (job === undefined ? page : "now")) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
    }
    if (!this.view) return;
    this.main.replaceChildren(this.view.element);
    document.title = `${this.view.title} – Berth`;
    window.scrollTo(0, 0);
    this.update();
  }

  private update(): void {
    const { live } = this;
    if (live.link === "shut") return document.body.replaceChildren(door(live.refusal));
    const words = { open: "live", broken: live.state ? "berthd is away; trying again" : "…" };
    this.link.textContent = words[live.link];
    this.link.className = `link ${live.link}`;
    if (live.state) this.view?.update();
  }
}

void open().then((live) => {
  if (live.link === "shut") document.body.replaceChildren(door(live.refusal));
  else new App(live).start();
});
