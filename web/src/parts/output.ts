// output.ts - the end of a job's output, as text and as it comes.

import { read } from "../api";
import { plainText } from "./ansi";
import { h } from "./dom";

const BYTES = 64 * 1024; // of what is there already
const KEPT = 256 * 1024; // letters that stay on the page
const DRAW_MS = 200;

export class Output {
  private readonly text = h("pre", { class: "output", tabindex: "0", role: "log", "aria-label": "Output", "aria-live": "off" });
  private readonly note = h("p", { class: "note" }, "Nothing so far.");
  readonly element = h("div", {}, this.text, this.note);
  private readonly end = new AbortController();
  private raw = "";
  private drawing = false;

  constructor(private readonly job: number) {
    void this.run();
  }

  close(): void {
    this.end.abort();
  }

  private async run(): Promise<void> {
    while (!this.end.signal.aborted) {
      try {
        this.raw = "";
        await read(`/v1/jobs/${this.job}/log?offset=-${BYTES}&follow=true`, this.end.signal, (text) => this.take(text));
        this.note.textContent = this.raw === "" ? "It has written nothing." : "";
        return;
      } catch (error) {
        if (this.end.signal.aborted) return;
        const away = error instanceof TypeError; // the connection broke: berthd is away
        this.note.textContent = away ? "berthd is away; trying again." : error instanceof Error ? error.message : "";
        if (!away) return;
        await new Promise((resolve) => setTimeout(resolve, 2000));
      }
    }
  }

  private take(text: string): void {
    this.raw = (this.raw + text).slice(-KEPT);
    this.note.textContent = "Follows as it comes.";
    if (this.drawing) return;
    this.drawing = true;
    setTimeout(() => this.draw(), DRAW_MS);
  }

  private draw(): void {
    this.drawing = false;
    const { text } = this;
    const atEnd = text.scrollTop + text.clientHeight >= text.scrollHeight - 30;
    text.textContent = plainText(this.raw);
    if (atEnd) text.scrollTop = text.scrollHeight;
  }
}
