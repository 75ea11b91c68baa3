// sse.ts - server-sent events, from pieces of text to events.

/** Takes a server-sent stream apart, however it is cut into pieces. */
export class Lines {
  private rest = "";
  private name = "";
  private data = "";

  constructor(private readonly event: (name: string, data: string) => void) {}

  take(text: string): void {
    const lines = (this.rest + text).split("\n");
    this.rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line === "") this.end();
      else if (line.startsWith("data: ")) this.data += line.slice(6);
      else if (line.startsWith("event: ")) this.name = line.slice(7);
    }
  }

  private end(): void {
    if (this.data !== "") this.event(this.name, this.data);
    this.name = "";
    this.data = "";
  }
}
