// cluster.ts - the last hours: GPUs in use, who waits for what, who got what he was due.

import { get } from "../api";
import { calibrationOf } from "../parts/calibration";
import { h, styled } from "../parts/dom";
import { fixed, plain } from "../parts/format";
import { barSwatch, policyVariable, swatch } from "../parts/palette";
import { Plot } from "../parts/plot";
import { drawStack } from "../parts/stack";
import type { Flow, Forecast, Trends } from "../schema";
import type { Site, View } from "./view";

const AGAIN_MS = 5000; // samples come no sooner
const FORECASTS_MS = 60_000; // how well they hold changes slowly

const REASONS: Record<string, string> = {
  resources: "too few GPUs are free",
  order: "others go first",
  held: "held",
  begin: "not before a time",
  dependency: "other jobs come first",
  array_limit: "the limit of its array",
  never: "can never run",
  victim_leaving: "others are leaving for it",
  starting: "is being started",
  calendar: "its nodes are not available for long enough",
};

/** The same colour for the same reason, always. */
const PLACES = Object.keys(REASONS);

interface Flows {
  flow?: string;
  flows?: Flow[];
}

const BYTES = ["B", "kB", "MB", "GB", "TB"];

function bytesPerSecond(value: number): string {
  const power = Math.min(BYTES.length - 1, value >= 1 ? Math.floor(Math.log10(value) / 3) : 0);
  return `${plain(value / 1000 ** power)} ${BYTES[power] ?? ""}/s`;
}

/** What each job sends, the first level first: a bar each, in the colour of its level. */
function linkLoad(flows: readonly Flow[]): HTMLElement {
  const most = Math.max(1, ...flows.map(({ bytes_per_s }) => bytes_per_s ?? 0));
  const rows = [...flows]
    .sort((a, b) => (a.level ?? 0) - (b.level ?? 0) || (b.bytes_per_s ?? 0) - (a.bytes_per_s ?? 0))
    .map(({ job = 0, level = 0, hosts = [], bytes_per_s, why }) => {
      const fill = styled(h("span", { class: "fill" }), { width: `${(100 * (bytes_per_s ?? 0)) / most}%`, background: policyVariable(level) });
      const load = bytes_per_s === undefined ? h("td", { class: "absent" }, "–") : h("td", {}, h("span", { class: "bar" }, fill), bytesPerSecond(bytes_per_s));
      return h("tr", { title: why ?? "" }, h("th", { scope: "row" }, barSwatch(level), ` ${level}`), h("td", {}, h("a", { href: `#/job/${job}` }, String(job))), load, h("td", {}, hosts.join(" ")));
    });
  const heads = ["Level", "Job", "Load", "Hosts"].map((head) => h("th", { scope: "col" }, head));
  return h("div", { class: "across" }, h("table", { class: "figures load" }, h("thead", {}, h("tr", {}, ...heads)), h("tbody", {}, ...rows)));
}

function keyOf(entries: readonly { mark: HTMLElement; name: string }[]): HTMLElement {
  return h("div", { class: "key" }, ...entries.map(({ mark, name }) => h("span", {}, mark, name)));
}

class ClusterPage implements View {
  readonly title = "Cluster";
  private readonly use = new Plot(220, "cluster");
  private readonly waiting = new Plot(220, "cluster");
  private readonly shares = new Map<string, { plot: Plot; now: HTMLElement }>();
  private readonly waitingKey = h("div");
  private readonly sharesGrid = h("div", { class: "shares" });
  private readonly levels = h("section", { class: "card wide", hidden: true });
  private readonly forecasts = h("section", { class: "card wide", hidden: true });
  private forecastsAsked = -Infinity;
  private readonly empty = h("p", { class: "card note" }, "The first figures come a few seconds after berthd was started.");
  private readonly charts: HTMLElement;
  readonly element: HTMLElement;
  private trends: Trends | undefined;
  private events = -1;
  private asking = false;
  private closed = false;

  constructor(private readonly site: Site) {
    const card = (title: string, note: string, ...parts: HTMLElement[]): HTMLElement =>
      h("section", { class: "card" }, h("div", { class: "card-head" }, h("h2", {}, title)), h("p", { class: "note" }, note), ...parts);
    const useKey = keyOf([
      { mark: barSwatch(0), name: "held by jobs" },
      { mark: barSwatch(6), name: "used by others" },
    ]);
    this.charts = h(
      "div",
      { class: "grid two", hidden: true },
      card("GPUs in use", "", this.use.element, useKey),
      card("Jobs that wait, by reason", "", this.waiting.element, this.waitingKey),
      h(
        "section",
        { class: "card wide" },
        h("div", { class: "card-head" }, h("h2", {}, "Shares: got and due")),
        h("p", { class: "note" }, "Due: all GPUs shared out evenly, by weight, among those who want some; nobody gets more than that."),
        this.sharesGrid,
        keyOf([
          { mark: barSwatch(0), name: "GPUs it has" },
          { mark: swatch(1, [5, 4]), name: "GPUs it is due" },
        ]),
      ),
      this.levels,
      this.forecasts,
    );
    this.element = h("div", { class: "page cluster" }, this.empty, this.charts, h("p", { class: "note" }, "Kept in memory since berthd was started; the further back, the coarser."));
    void this.ask();
  }

  update(): void {
    if (this.events === this.site.live.eventCount || this.asking) return;
    void this.ask();
  }

  close(): void {
    this.closed = true;
  }

  private async ask(): Promise<void> {
    this.asking = true;
    this.events = this.site.live.eventCount;
    try {
      this.trends = await get<Trends>("/v1/trends");
      if (!this.closed) this.draw();
      if (this.site.live.state?.server.flow !== undefined) this.drawLevels(await get<Flows>("/v1/flows"));
      await this.askForecasts();
    } catch {
      // The stream breaks as well, and says so.
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    this.asking = false;
    // Once more: the sample that shows what happened comes after it.
    if (!this.closed) void (this.events === this.site.live.eventCount ? this.askLast() : this.ask());
  }

  private async askForecasts(): Promise<void> {
    if (performance.now() - this.forecastsAsked < FORECASTS_MS) return;
    this.forecastsAsked = performance.now();
    const forecast = await get<Forecast>("/v1/forecast?ids=1"); // the figures, and not thousands of jobs
    this.forecasts.hidden = false;
    this.forecasts.replaceChildren(h("div", { class: "card-head" }, h("h2", {}, "How well forecasts held")), calibrationOf(forecast));
  }

  private async askLast(): Promise<void> {
    try {
      this.trends = await get<Trends>("/v1/trends");
      if (!this.closed) this.draw();
    } catch {
      // As above.
    }
  }

  private draw(): void {
    const { trends } = this;
    if (!trends || trends.t.length === 0) return;
    this.empty.hidden = true;
    this.charts.hidden = false;
    const now = this.site.live.now();
    drawStack(this.use, {
      title: "GPUs in use over time",
      label: "GPUs",
      t: trends.t,
      now,
      layers: [
        { name: "held by jobs", place: 0, y: trends.held },
        { name: "used by others", place: 6, y: trends.foreign },
      ],
      most: Math.max(...trends.gpus),
    });
    this.drawWaiting(trends, now);
    this.drawShares(trends, now);
  }

  private drawWaiting(trends: Trends, now: number): void {
    const layers = trends.reasons
      .map(({ token, jobs }) => ({ name: REASONS[token] ?? token, place: Math.max(0, PLACES.indexOf(token)), y: jobs }))
      .sort((a, b) => a.place - b.place);
    drawStack(this.waiting, { title: "Jobs that wait over time, by reason", label: "Jobs", t: trends.t, now, layers });
    this.waitingKey.replaceChildren(layers.length > 0 ? keyOf(layers.map(({ name, place }) => ({ mark: barSwatch(place), name }))) : h("p", { class: "note" }, "No job has waited."));
  }

  /** A small chart each: what it got as an area, what it was due as a dashed line. */
  private drawShares({ t, entities, gpus }: Trends, now: number): void {
    const most = Math.max(1, ...gpus);
    entities.forEach(({ name, due, got }) => {
      let chart = this.shares.get(name);
      if (!chart) {
        chart = { plot: new Plot(150, "cluster"), now: h("span", { class: "note" }) };
        this.shares.set(name, chart);
        this.sharesGrid.append(h("figure", { class: "share", "data-entity": name }, h("figcaption", {}, h("strong", {}, name), " ", chart.now), chart.plot.element));
      }
      const last = (values: readonly number[]): string => fixed(values[values.length - 1] ?? 0, 1).replace(/\.0$/, "");
      chart.now.textContent = `has ${last(got)}, due ${last(due)}`;
      const dues = { policy: 1, name: "due", dash: [5, 4], x: [...t, now], y: [...due, due[due.length - 1] ?? 0] };
      drawStack(chart.plot, { title: `GPUs that ${name} got, and was due`, label: "", t, now, layers: [{ name: "got", place: 0, y: got }], most, over: [dues] });
    });
  }

  private drawLevels({ flow, flows = [] }: Flows): void {
    this.levels.hidden = false;
    this.levels.replaceChildren(
      h("div", { class: "card-head" }, h("h2", {}, "Whose packets go first")),
      h("p", { class: "note" }, `By ${flow ?? ""}: level 0 goes first. Load is what was sent lately, where somebody counts it.`),
      flows.length > 0 ? linkLoad(flows) : h("p", { class: "note" }, "No job is running."),
    );
  }
}

export function clusterView(site: Site): View {
  return new ClusterPage(site);
}
