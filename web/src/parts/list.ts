// list.ts - a table of any length: only the rows in sight exist.
//
// Rows have one height, so that which of them are in sight is arithmetic.  One of them is the
// selected one; arrows, j and k move it, Enter opens it.

import { h, styled, type Child } from "./dom";

export interface Column<T> {
  name: string; // of its class and in the heading's data
  head: string;
  cell(item: T): Child;
  title?(item: T): string; // in full, where the cell may be cut
  order?(item: T): number | string; // what it is sorted by; absent: it is not
  number?: boolean; // aligned to the right
}

export interface ListOptions<T> {
  label: string; // for screen readers
  columns: readonly Column<T>[];
  key(item: T): number;
  open?(item: T): void;
  class?(item: T): string;
  empty: Child; // instead of rows
  sorted?: { column: string; down: boolean };
}

const SPARE = 4; // rows beyond either edge

function compare(a: number | string | undefined, b: number | string | undefined): number {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? 1 : -1;
  if (typeof a === "number" && typeof b === "number") return a - b;
  return String(a).localeCompare(String(b));
}

export class List<T> {
  readonly element: HTMLElement;
  private readonly head = h("div", { class: "list-head", role: "row" });
  private readonly body = h("div", { class: "list-body", role: "rowgroup" });
  private readonly view: HTMLElement;
  private readonly none: HTMLElement;
  private items: readonly T[] = [];
  private rowHeight = 34;
  private selected = -1; // key
  private sorted: { column: string; down: boolean } | undefined;
  private readonly rows = new Map<number, HTMLElement>(); // by place

  constructor(private readonly options: ListOptions<T>) {
    this.sorted = options.sorted;
    this.view = h("div", { class: "list-view", tabindex: "0" }, this.body);
    this.none = h("div", { class: "list-empty", hidden: true }, options.empty);
    this.element = h("div", { class: "list", role: "grid", "aria-label": options.label }, this.head, this.view, this.none);
    this.drawHead();
    this.view.addEventListener("scroll", () => this.draw(), { passive: true });
    this.view.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.resize()).observe(this.view);
  }

  /** These, in this order unless a heading was clicked. */
  show(items: readonly T[]): void {
    this.items = this.inOrder(items);
    this.none.hidden = items.length > 0;
    this.view.hidden = items.length === 0;
    this.element.setAttribute("aria-rowcount", String(items.length + 1));
    styled(this.body, { height: `${items.length * this.rowHeight}px` });
    this.draw();
  }

  /** Those in sight. */
  visible(): readonly T[] {
    const { from, to } = this.sight();
    return this.items.slice(from, to);
  }

  focus(): void {
    this.view.focus();
    if (this.selected < 0) this.move(1);
  }

  /** Select the next, or one of those before. */
  move(by: number): void {
    const at = this.items.findIndex((item) => this.options.key(item) === this.selected);
    const place = Math.max(0, Math.min(this.items.length - 1, at < 0 ? (by > 0 ? 0 : this.items.length - 1) : at + by));
    const item = this.items[place];
    if (item === undefined) return;
    this.selected = this.options.key(item);
    const top = place * this.rowHeight;
    if (top < this.view.scrollTop) this.view.scrollTop = top;
    else if (top + this.rowHeight > this.view.scrollTop + this.view.clientHeight)
      this.view.scrollTop = top + this.rowHeight - this.view.clientHeight;
    this.draw();
  }

  openSelected(): void {
    const item = this.items.find((one) => this.options.key(one) === this.selected);
    if (item !== undefined) this.options.open?.(item);
  }

  private inOrder(items: readonly T[]): readonly T[] {
    const { sorted } = this;
    const order = this.options.columns.find((column) => column.name === sorted?.column)?.order;
    if (!sorted || !order) return items;
    const keyed = items.map((item) => ({ item, by: order(item), key: this.options.key(item) }));
    const sign = sorted.down ? -1 : 1;
    keyed.sort((a, b) => sign * compare(a.by, b.by) || a.key - b.key);
    return keyed.map(({ item }) => item);
  }

  private drawHead(): void {
    const cells = this.options.columns.map((column) => {
      const down = this.sorted?.column === column.name ? this.sorted.down : undefined;
      const sort = down === undefined ? "none" : down ? "descending" : "ascending";
      const mark = h("span", { class: "sort-mark", "aria-hidden": "true" }, down === undefined ? "" : down ? "▾" : "▴");
      const head: Child[] = column.order
        ? [h("button", { type: "button", class: "sort", click: () => this.sort(column) }, column.head, mark)]
        : [column.head];
      const name = `cell ${column.name}${column.number ? " number" : ""}`;
      return h("div", { class: name, role: "columnheader", "aria-sort": sort }, ...head);
    });
    this.head.replaceChildren(...cells);
  }

  /** Up, down, and then in the order in which they are given. */
  private sort(column: Column<T>): void {
    const before = this.sorted?.column === column.name ? this.sorted.down : undefined;
    this.sorted = before === true ? undefined : { column: column.name, down: before === false };
    this.drawHead();
    this.show(this.items);
  }

  private resize(): void {
    const height = parseFloat(getComputedStyle(this.element).getPropertyValue("--row-height"));
    if (height > 0 && height !== this.rowHeight) {
      this.rowHeight = height;
      this.rows.forEach((row) => row.remove());
      this.rows.clear();
      styled(this.body, { height: `${this.items.length * height}px` });
    }
    this.draw();
  }

  private sight(): { from: number; to: number } {
    const from = Math.floor(this.view.scrollTop / this.rowHeight);
    const to = Math.ceil((this.view.scrollTop + this.view.clientHeight) / this.rowHeight);
    return { from: Math.max(0, from), to: Math.min(this.items.length, to) };
  }

  private draw(): void {
    const { from, to } = this.sight();
    const first = Math.max(0, from - SPARE);
    const last = Math.min(this.items.length, to + SPARE);
    for (const [place, row] of this.rows) {
      if (place >= first && place < last) continue;
      row.remove();
      this.rows.delete(place);
    }
    for (let place = first; place < last; place++) {
      const item = this.items[place];
      if (item !== undefined) this.drawRow(place, item);
    }
  }

  private drawRow(place: number, item: T): void {
    const key = this.options.key(item);
    let row = this.rows.get(place);
    if (!row) {
      row = styled(h("div", { role: "row", "aria-rowindex": String(place + 2) }), { top: `${place * this.rowHeight}px` });
      row.append(...this.options.columns.map((column) => h("div", { class: `cell ${column.name}${column.number ? " number" : ""}`, role: "gridcell" })));
      row.addEventListener("click", () => this.click(place));
      this.rows.set(place, row);
      this.body.append(row);
    }
    const chosen = key === this.selected;
    row.className = `list-row ${this.options.class?.(item) ?? ""}${chosen ? " selected" : ""}`;
    row.setAttribute("aria-selected", String(chosen));
    row.dataset["key"] = String(key);
    this.options.columns.forEach((column, i) => this.drawCell(row?.children[i], column, item));
  }

  /** Text that is still the same is left alone: most of it is, most of the time. */
  private drawCell(cell: Element | undefined, column: Column<T>, item: T): void {
    if (!(cell instanceof HTMLElement)) return;
    const content = column.cell(item);
    if (content instanceof Node) cell.replaceChildren(content);
    else {
      const text = content === false || content === undefined ? "" : content;
      if (cell.childElementCount > 0 || cell.textContent !== text) cell.textContent = text;
    }
    const title = column.title?.(item) ?? "";
    if (cell.title !== title) cell.title = title;
  }

  private click(place: number): void {
    const item = this.items[place];
    if (item === undefined || String(getSelection()) !== "") return; // somebody marks text
    this.selected = this.options.key(item);
    this.options.open?.(item);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.view.clientHeight / this.rowHeight) - 1);
    const keys: Record<string, () => void> = {
      ArrowDown: () => this.move(1),
      ArrowUp: () => this.move(-1),
      PageDown: () => this.move(page),
      PageUp: () => this.move(-page),
      Home: () => this.move(-this.items.length),
      End: () => this.move(this.items.length),
      Enter: () => this.openSelected(),
    };
    const step = keys[event.key];
    if (!step) return;
    event.preventDefault();
    step();
  }
}
