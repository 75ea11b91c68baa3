// window.ts - the part of a time axis that is seen: zoomed about a point, moved, never lost.

export interface Extent {
  from: number;
  to: number;
}

/** Closer than this nothing new is seen: a fraction of the whole, or a tenth of a second. */
const CLOSEST = 1e-5;
const CLOSEST_S = 0.1;

export class Window {
  from: number;
  to: number;

  constructor(private whole: Extent) {
    this.from = whole.from;
    this.to = whole.to;
  }

  get length(): number {
    return this.to - this.from;
  }

  get isWhole(): boolean {
    return this.from <= this.whole.from && this.to >= this.whole.to;
  }

  /** 'factor' below one comes closer; 'at' (0..1 of what is seen) stays where it is. */
  zoom(factor: number, at: number): void {
    const all = this.whole.to - this.whole.from;
    const length = Math.min(all, Math.max(CLOSEST_S, all * CLOSEST, this.length * factor));
    const fixed = this.from + at * this.length;
    this.put(fixed - at * length, length);
  }

  /** By a part of what is seen: 0.5 goes on by half a screen. */
  move(part: number): void {
    this.put(this.from + part * this.length, this.length);
  }

  reset(): void {
    this.from = this.whole.from;
    this.to = this.whole.to;
  }

  /** Another whole, and that part of it. */
  see(whole: Extent, part: Extent): void {
    this.whole = whole;
    this.from = part.from;
    this.to = part.to;
  }

  /** Another whole; what is seen stays, as far as it is in there. */
  within(whole: Extent): void {
    this.whole = whole;
    this.put(this.from, this.length);
  }

  private put(from: number, length: number): void {
    if (length >= this.whole.to - this.whole.from) return this.reset();
    this.from = Math.max(this.whole.from, Math.min(from, this.whole.to - length));
    this.to = this.from + length;
  }
}
