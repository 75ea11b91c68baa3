// cell.ts - a value that several parts look at.

export class Cell<T> {
  private readonly watchers: ((value: T) => void)[] = [];

  constructor(private current: T) {}

  get(): T {
    return this.current;
  }

  set(value: T): void {
    this.current = value;
    for (const watcher of this.watchers) watcher(value);
  }

  /** Called at once with the present value, then with every new one. */
  watch(watcher: (value: T) => void): void {
    this.watchers.push(watcher);
    watcher(this.current);
  }
}
