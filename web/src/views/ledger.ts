// ledger.ts - every preemption and its price; what each rule has cost and brought.

import { get } from "../api";
import { h } from "../parts/dom";
import { dayTime, gpuTime, mark, plain, span } from "../parts/format";
import { List, type Column } from "../parts/list";
import { swatch } from "../parts/palette";
import { Plot, valueAt, type Line } from "../parts/plot";
import { wallAxis } from "../parts/stack";
import { even } from "../parts/ticks";
import { sharingWords } from "../parts/sharing";
import type { Entry, SharingTotals } from "../schema";
import type { Site, View } from "./view";

const LIMIT = 10000;
const AGAIN_MS = 2000;

interface Total {
  rule: string;
  count: number;
  predicted: number;
  measured: number;
  spared: number;
}

function add(total: Total, entry: Entry): void {
  total.count++;
  total.predicted += entry.predicted_cost_gpu_s ?? 0;
  total.measured += entry.actual_cost_gpu_s ?? 0;
  total.spared += entry.wait_saved_s ?? 0;
}

/** By rule, and all of them at the end where there are several. */
export function totalsOf(entries: readonly Entry[]): Total[] {
  const fresh = (rule: string): Total => ({ rule, count: 0, predicted: 0, measured: 0, spared: 0 });
  const rules = new Map<string, Total>();
  const all = fresh("all");
  for (const entry of entries) {
    const rule = entry.rule ?? "";
    const total = rules.get(rule) ?? fresh(rule);
    rules.set(rule, total);
    add(total, entry);
    add(all, entry);
  }
  const totals = [...rules.values()].sort((a, b) => b.measured - a.measured || a.rule.localeCompare(b.rule));
  return totals.length > 1 ? [...totals, all] : totals;
}

const RULES: Record<string, string> = {
  order: "somebody ahead needed the seats",
  trial: "a trial job had to start",
  round: "the round was over",
  resize: "went on with another size",
};

function totalsTable(totals: readonly Total[]): HTMLElement {
  const heads = ["Rule", "Times", "Lost, predicted", "Lost, measured", "Waiting spared"];
  const rows = totals.map(({ rule, count, predicted, measured, spared }) =>
    h(
      "tr",
      { class: rule === "all" ? "sum" : "" },
      h("th", { scope: "row" }, rule, RULES[rule] !== undefined && h("small", {}, RULES[rule] ?? "")),
      h("td", {}, plain(count)),
      h("td", {}, gpuTime(predicted)),
      h("td", {}, gpuTime(measured)),
      h("td", {}, span(spared)),
    ),
  );
  return h("div", { class: "across" }, h("table", { class: "figures totals" }, h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", { scope: "col" }, head)))), h("tbody", {}, ...rows)));
}

function columnsFor(clock: () => number): Column<Entry>[] {
  const job = (id: number | undefined): HTMLElement | string =>
    id === undefined ? "–" : h("a", { href: `#/job/${id}`, click: (event) => event.stopPropagation() }, String(id));
  return [
    { name: "at", head: "When", cell: (entry) => dayTime(entry.at ?? 0, clock()), order: (entry) => entry.at ?? 0 },
    { name: "victim", head: "Who left", number: true, cell: (entry) => job(entry.victim), order: (entry) => entry.victim ?? 0 },
    { name: "for", head: "For", number: true, cell: (entry) => job(entry.for), order: (entry) => entry.for ?? 0 },
    { name: "rule", head: "Rule", cell: (entry) => entry.rule ?? "", order: (entry) => entry.rule ?? "" },
    { name: "gpus", head: "GPUs", number: true, cell: (entry) => String(entry.gpus ?? 0), order: (entry) => entry.gpus ?? 0 },
    { name: "predicted", head: "Predicted", number: true, cell: (entry) => gpuTime(entry.predicted_cost_gpu_s ?? 0), order: (entry) => entry.predicted_cost_gpu_s ?? 0 },
    { name: "measured", head: "Measured", number: true, cell: (entry) => gpuTime(entry.actual_cost_gpu_s ?? 0), order: (entry) => entry.actual_cost_gpu_s ?? 0 },
    { name: "pause", head: "Pause", number: true, cell: (entry) => gpuTime(entry.pause_gpu_s ?? 0), order: (entry) => entry.pause_gpu_s ?? 0 },
    { name: "load", head: "Load", number: true, cell: (entry) => gpuTime(entry.load_gpu_s ?? 0), order: (entry) => entry.load_gpu_s ?? 0 },
    { name: "redo", head: "Done again", number: true, cell: (entry) => gpuTime(entry.redo_gpu_s ?? 0), order: (entry) => entry.redo_gpu_s ?? 0 },
    { name: "spared", head: "Spared", number: true, cell: (entry) => (entry.wait_saved_s === undefined ? (entry.open ? "not yet known" : "–") : span(entry.wait_saved_s)), order: (entry) => entry.wait_saved_s ?? -1 },
  ];
}

/** Lost so far, as it came together. */
function drawCosts(plot: Plot, entries: readonly Entry[], now: number): void {
  const inOrder = [...entries].sort((a, b) => (a.at ?? 0) - (b.at ?? 0));
  const line = (policy: number, name: string, dash: number[], of: (entry: Entry) => number): Line => {
    let sum = 0;
    const x = inOrder.map((entry, i) => (entry.at ?? 0) + i * 1e-6);
    const y = inOrder.map((entry) => (sum += of(entry) / 60));
    return { policy, name, dash, x: [...x, now], y: [...y, sum] };
  };
  const lines = [
    line(1, "predicted", [5, 4], (entry) => entry.predicted_cost_gpu_s ?? 0),
    line(0, "measured", [], (entry) => entry.actual_cost_gpu_s ?? 0),
  ];
  const most = Math.max(...lines.map(({ y }) => y[y.length - 1] ?? 0), 1e-3);
  plot.draw({
    title: "GPU minutes lost to preemptions so far, predicted and measured",
    lines,
    x: wallAxis(inOrder[0]?.at ?? now - 1, now),
    y: { label: "GPU minutes", range: [0, most * 1.08], ticks: even, tick: mark },
    stepped: true,
    at: (time) => `Lost by ${dayTime(time, now)}`,
    value: (value) => `${plain(value)} GPU min`,
    rows: (time) => lines.map((one) => ({ mark: swatch(one.policy, one.dash), name: one.name, value: `${plain(valueAt(one, time, true) ?? 0)} GPU min` })),
  });
}

class LedgerPage implements View {
  readonly title = "Ledger";
  private readonly totals = h("div");
  private readonly plot = new Plot(230);
  private readonly filled = h("div", { class: "grid ledger-top", hidden: true });
  private readonly list: List<Entry & { number: number }>;
  private readonly count = h("span", { class: "note" });
  private readonly sharing = h("div", { class: "card note sharing", hidden: true });
  readonly element: HTMLElement;
  private known: Entry[] | undefined;
  private asking = false;
  private closed = false;

  constructor(private readonly site: Site) {
    const { live } = site;
    const nothing = h("div", { class: "hint-box" }, h("p", {}, h("strong", {}, "No job has had to make room for another.")), h("p", {}, "When one does, its price stands here: what was expected, and what came of it."));
    this.list = new List<Entry & { number: number }>({
      label: "Preemptions",
      columns: columnsFor(() => live.now()),
      key: (entry) => entry.number,
      open: (entry) => entry.victim !== undefined && site.openJob(entry.victim),
      empty: nothing,
    });
    this.filled.append(
      h("section", { class: "card" }, h("div", { class: "card-head" }, h("h2", {}, "By rule")), this.totals),
      h(
        "section",
        { class: "card" },
        h("div", { class: "card-head" }, h("h2", {}, "Lost so far")),
        this.plot.element,
        h("div", { class: "key" }, h("span", {}, swatch(0, []), "measured"), h("span", {}, swatch(1, [5, 4]), "predicted when it was decided")),
      ),
    );
    this.element = h("div", { class: "page ledger-page" }, this.sharing, this.filled, h("section", { class: "card queue" }, h("div", { class: "card-head" }, h("h2", {}, "Preemptions"), this.count), this.list.element));
    void this.ask();
  }

  /** The newest entries come with the state; more of them, and their figures, are asked for. */
  update(): void {
    if (this.site.live.state?.entries !== this.known && !this.asking) void this.ask();
  }

  close(): void {
    this.closed = true;
  }

  step(by: number): void {
    this.list.move(by);
  }

  enter(): void {
    this.list.openSelected();
  }

  private async ask(): Promise<void> {
    this.asking = true;
    this.known = this.site.live.state?.entries;
    try {
      const { entries, sharing } = await get<{ entries: Entry[]; sharing?: SharingTotals }>(`/v1/ledger?limit=${LIMIT}`);
      if (this.closed) return;
      this.sharing.hidden = sharing === undefined;
      if (sharing) this.sharing.textContent = sharingWords(sharing);
      this.draw(entries);
    } catch {
      // The stream breaks as well, and says so.
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    this.asking = false;
    if (!this.closed) this.update();
  }

  private draw(entries: Entry[]): void {
    this.filled.hidden = entries.length === 0;
    this.totals.replaceChildren(totalsTable(totalsOf(entries)));
    if (entries.length > 0) drawCosts(this.plot, entries, this.site.live.now());
    this.list.show(entries.map((entry, i) => ({ ...entry, number: entries.length - i })));
    this.count.textContent = entries.length >= LIMIT ? `the newest ${plain(LIMIT)}` : "";
  }
}

export function ledgerView(site: Site): View {
  return new LedgerPage(site);
}
