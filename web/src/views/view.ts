// view.ts - what a page of the dashboard is, and what it may use.

import type { Live } from "../live";

export interface View {
  title: string;
  element: HTMLElement;
  update(): void; // something has changed
  tick?(): void; // a second has passed: times and bars go on
  close?(): void;
  find?(): void; // '/' was pressed
  step?(by: number): void; // j and k
  enter?(): void;
}

export interface Site {
  live: Live;
  openJob(id: number): void;
  say(sentence: string, bad?: boolean): void;
}
