// job.ts - one job: its life, its curve, what holds it back, what it says; and what to do with it.

import { get, Refused, send } from "../api";
import { attemptsOf, pricesOf } from "../parts/attempts";
import { className, jobMark, progressOf, stateChip } from "../parts/chip";
import { h, type Child } from "../parts/dom";
import { expectedSentences } from "../parts/expected";
import { dayTime, span } from "../parts/format";
import { LossChart } from "../parts/loss";
import { Output } from "../parts/output";
import { ratesOf } from "../parts/rates";
import { reasonsOf } from "../parts/reasons";
import { partnerOf, sharingOf } from "../parts/sharing";
import { speedsOf } from "../parts/speeds";
import type { Job, Story, Why } from "../schema";
import { ENDED_STATES, type Seen } from "../state";
import type { Site, View } from "./view";

const AGAIN_MS = 1500; // between two questions, however much happens
const SURE_MS = 4000; // to press again what cannot be undone

/** Facts that may be long. */
const WIDE: ReadonlySet<string> = new Set(["Reason", "Start", "End", "Command", "Folder", "Runs on", "Ran on", "Beside"]);

class JobPage implements View {
  readonly title: string;
  readonly element = h("div", { class: "page job" });
  private readonly head = h("div", { class: "job-head" });
  private readonly buttons = h("div", { class: "actions" });
  private readonly facts = h("dl", { class: "facts" });
  private readonly life = h("section", { class: "card wide", hidden: true });
  private readonly curve = h("section", { class: "card", hidden: true });
  private readonly speed = h("section", { class: "card", hidden: true });
  private readonly rates = h("section", { class: "card", hidden: true });
  private readonly why = h("section", { class: "card wide", hidden: true });
  private readonly price = h("section", { class: "card wide", hidden: true });
  private readonly sharing = h("section", { class: "card wide", hidden: true });
  private readonly loss = new LossChart();
  private output: Output | undefined;
  private job: Job | undefined;
  private story: Story | undefined;
  private events = -1;
  private asking = false;
  private closed = false;
  private drawnButtons = "";

  constructor(
    private readonly site: Site,
    private readonly id: number,
  ) {
    this.title = `Job ${id}`;
    this.curve.append(h("div", { class: "card-head" }, h("h2", {}, "Loss")), this.loss.element);
    this.element.append(h("p", { class: "note" }, "…"));
    void this.ask();
  }

  /** Something happened somewhere: to this job, or to one that it waits for. */
  update(): void {
    if (this.events === this.site.live.eventCount || this.asking) return;
    void this.ask();
  }

  tick(): void {
    if (this.job && !ENDED_STATES.has(this.job.state)) this.draw();
  }

  close(): void {
    this.closed = true;
    this.output?.close();
  }

  private async ask(): Promise<void> {
    this.asking = true;
    this.events = this.site.live.eventCount;
    try {
      const path = `/v1/jobs/${this.id}`;
      const [job, story, why] = await Promise.all([get<Job>(path), get<Story>(`${path}/story`), get<Why>(`${path}/why`)]);
      if (this.closed) return;
      this.learn(job, story, why);
    } catch (error) {
      if (error instanceof Refused && !this.job) this.refuse(error);
    }
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    this.asking = false;
    if (!this.closed) this.update();
  }

  private refuse(error: Refused): void {
    const words = error.status === 404 ? `There is no job ${this.id}.` : `${error.message}.`;
    this.element.replaceChildren(h("div", { class: "card hint-box" }, h("p", {}, h("strong", {}, words)), h("p", {}, h("a", { href: "#/now" }, "All jobs"))));
  }

  private learn(job: Job, story: Story, why: Why): void {
    const first = this.job === undefined;
    this.job = { ...job, seen: this.site.live.now() } as Seen;
    this.story = story;
    if (first) this.begin();
    this.draw();
    this.curve.hidden = !this.loss.draw(story);
    this.speed.hidden = story.speeds.length === 0;
    if (!this.speed.hidden) this.speed.replaceChildren(h("div", { class: "card-head" }, h("h2", {}, "Throughput by accelerator")), speedsOf(story.speeds));
    this.rates.hidden = job.rates === undefined || job.rates.length < 2;
    if (job.rates) this.rates.replaceChildren(h("div", { class: "card-head" }, h("h2", {}, "Expected on each type")), ratesOf(job.rates));
    // Of one that simply runs, all of it is said above.
    this.why.hidden = ENDED_STATES.has(job.state) || why.reasons.every(({ token }) => token === "running");
    this.why.replaceChildren(h("div", { class: "card-head" }, h("h2", {}, job.state === "RUNNING" || job.state === "STOPPING" ? "How it stands" : "Why it waits")), reasonsOf(why));
    const sharing = sharingOf(job, this.site.live.now());
    this.sharing.hidden = sharing === undefined;
    if (sharing) this.sharing.replaceChildren(h("div", { class: "card-head" }, h("h2", {}, "GPUs shared with other jobs")), sharing);
    const prices = pricesOf(job, this.site.live.now());
    this.price.hidden = prices === undefined;
    if (prices) this.price.replaceChildren(h("div", { class: "card-head" }, h("h2", {}, "Preemptions and their price")), prices);
  }

  private begin(): void {
    this.output = new Output(this.id);
    this.element.replaceChildren(
      h("div", { class: "card job-card" }, this.head, this.facts, this.buttons),
      h(
        "div",
        { class: "grid two" },
        this.why,
        this.life,
        this.curve,
        this.speed,
        this.rates,
        this.sharing,
        this.price,
        h("section", { class: "card wide" }, h("div", { class: "card-head" }, h("h2", {}, "Output")), this.output.element),
      ),
    );
  }

  private draw(): void {
    const { job, story } = this;
    if (!job || !story) return;
    const now = this.site.live.now();
    this.head.replaceChildren(
      h("h1", {}, jobMark(job), h("span", { class: "job-id" }, String(job.id)), h("span", {}, job.name ?? "")),
      stateChip(job.state),
      h("span", { class: "soft" }, className(job.class)),
    );
    this.facts.replaceChildren(...this.factsOf(job, now).map(([name, value]) => h("div", { class: WIDE.has(name) ? "wide" : "" }, h("dt", {}, name), h("dd", {}, value))));
    this.life.hidden = false;
    this.life.replaceChildren(h("div", { class: "card-head" }, h("h2", {}, "Attempts")), attemptsOf(job, story, now));
    this.drawButtons(job);
  }

  private factsOf(job: Job, now: number): [string, Child][] {
    const rows: [string, Child][] = [];
    const progress = progressOf(job, now);
    if (progress !== "") rows.push(["Progress", progress]);
    if (job.reason !== undefined && job.state !== "RUNNING") rows.push(["Reason", job.reason]);
    for (const [name, verb, expected] of [["Start", "start", job.expected_start], ["End", "end", job.expected_end]] as const) {
      const words = expectedSentences(verb, expected, now);
      if (words !== "") rows.push([name, words]);
    }
    rows.push(["GPUs", `${job.gpus}${job.types === undefined ? "" : ` of ${job.types}`}`]);
    const place = (job.placement ?? []).map(({ node, type, gpus }) => `${node ?? ""} (${type ?? ""}) ${(gpus ?? []).join(", ")}`).join("; ");
    if (place !== "") rows.push([ENDED_STATES.has(job.state) ? "Ran on" : "Runs on", place]);
    const partner = partnerOf(job);
    if (partner.length > 0) rows.push(["Beside", h("span", {}, ...partner)]);
    rows.push(["Submitted", `${dayTime(job.submit, now)} by ${job.user ?? "?"}${job.entity === undefined ? "" : ` (${job.entity})`}`]);
    rows.push(["Waited", span(job.waited_s ?? 0)]);
    if (job.end !== undefined) rows.push(["Ended", `${dayTime(job.end, now)}, after ${span(job.end - job.submit)}`]);
    if (job.exit_code !== undefined) rows.push(["Exit code", String(job.exit_code)]);
    if (job.command !== undefined) rows.push(["Command", h("code", {}, job.command.join(" "))]);
    if (job.cwd !== undefined) rows.push(["Folder", h("code", {}, job.cwd)]);
    return rows;
  }

  /** Only where they make sense; drawn anew only when that changes, so that a click is not lost. */
  private drawButtons(job: Job): void {
    const of = `${job.state} ${job.class}`;
    if (of === this.drawnButtons) return;
    this.drawnButtons = of;
    const waits = job.state === "PENDING" || job.state === "HELD";
    const other = job.class === "te" ? "be" : "te";
    this.buttons.replaceChildren(
      ...(waits && job.state === "PENDING" ? [this.button("Hold", "PATCH", { hold: true })] : []),
      ...(job.state === "HELD" ? [this.button("Release", "PATCH", { hold: false })] : []),
      ...(waits ? [this.button(`Make it ${other === "te" ? "a trial" : "best effort"}`, "PATCH", { class: other })] : []),
      ...(ENDED_STATES.has(job.state) ? [] : [this.cancelButton()]),
    );
  }

  private button(words: string, method: "PATCH" | "DELETE", body?: unknown): HTMLButtonElement {
    const button = h("button", { type: "button" }, words);
    button.addEventListener("click", () => void this.act(button, method, body));
    return button;
  }

  /** It cannot be undone: pressed twice. */
  private cancelButton(): HTMLElement {
    const button = h("button", { type: "button", class: "danger" }, "Cancel");
    let sure = false;
    button.addEventListener("click", () => {
      if (sure) return void this.act(button, "DELETE");
      sure = true;
      button.textContent = "Really cancel?";
      button.classList.add("sure");
      setTimeout(() => {
        sure = false;
        button.textContent = "Cancel";
        button.classList.remove("sure");
      }, SURE_MS);
    });
    return button;
  }

  private async act(button: HTMLButtonElement, method: "PATCH" | "DELETE", body?: unknown): Promise<void> {
    button.disabled = true;
    try {
      await send(method, `/v1/jobs/${this.id}`, body);
      this.site.say("Done.");
    } catch (error) {
      this.site.say(error instanceof Error ? error.message : String(error), true);
    }
    button.disabled = false;
  }
}

export function jobView(site: Site, id: number): View {
  return new JobPage(site, id);
}
