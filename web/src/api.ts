// api.ts - requests to berthd, and its event stream.
//
// Whoever opens the page has a pass in the address, good once.  It is traded for a session,
// which stays in this tab (a reload keeps it) and goes with every request as a header: unlike a
// cookie, no other port and no other page ever sees it.  A new tab asks the open ones for it.

import { Lines } from "./parts/sse";
import type { Event } from "./schema";
import type { ForecastEvent } from "./state";

const KEY = "berth-session";
const ASK_MS = 400; // how long a new tab waits for an older one before it shows the door

export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

let session = sessionStorage.getItem(KEY) ?? undefined;
const tabs = new BroadcastChannel("berth");

tabs.addEventListener("message", ({ data }: MessageEvent<unknown>) => {
  if (data === "who?" && session !== undefined) tabs.postMessage({ session });
  if (data === "left" && session !== undefined) {
    keep(undefined);
    location.reload();
  }
});

function keep(secret: string | undefined): void {
  session = secret;
  if (secret === undefined) sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, secret);
}

function askTabs(): Promise<string | undefined> {
  return new Promise((resolve) => {
    const hear = (message: MessageEvent<unknown>): void => {
      const data = message.data as { session?: unknown } | null;
      if (typeof data?.session === "string") done(data.session);
    };
    const done = (secret?: string): void => {
      tabs.removeEventListener("message", hear);
      resolve(secret);
    };
    tabs.addEventListener("message", hear);
    tabs.postMessage("who?");
    setTimeout(done, ASK_MS);
  });
}

/** The pass in the address, which is taken out of it: it must not stay in the history. */
function takePass(): string | undefined {
  const pass = /^#token=([0-9a-f]+)$/.exec(location.hash)?.[1];
  if (pass !== undefined) history.replaceState(null, "", "#/now");
  return pass;
}

/** Come in with what there is; false: there is nothing that opens. */
export async function enter(): Promise<boolean> {
  const pass = takePass();
  if (pass !== undefined) {
    keep(undefined);
    const answer = await request("POST", "/v1/session", { token: pass });
    keep(((await answer.json()) as { session: string }).session);
  }
  if (session === undefined) keep(await askTabs());
  return session !== undefined;
}

/** The session ends, in all tabs. */
export async function leave(): Promise<void> {
  await request("DELETE", "/v1/session").catch(() => undefined);
  keep(undefined);
  tabs.postMessage("left");
}

/** A tab that was slow to answer lets us in after all. */
export function waitForTabs(): void {
  tabs.addEventListener("message", ({ data }: MessageEvent<unknown>) => {
    const late = (data as { session?: unknown } | null)?.session;
    if (typeof late !== "string" || session !== undefined) return;
    keep(late);
    location.reload();
  });
}

/** Who was let in is not any more: forget the session. */
export function forget(): void {
  keep(undefined);
}

async function sentence(response: Response): Promise<string> {
  try {
    const { error } = (await response.json()) as { error?: unknown };
    if (typeof error === "string") return error;
  } catch {
    // It was no JSON.
  }
  return `berthd answered ${response.status}`;
}

async function request(method: string, path: string, body?: unknown, more: RequestInit = {}): Promise<Response> {
  const headers: Record<string, string> = { ...(more.headers as Record<string, string> | undefined) };
  if (session !== undefined) headers["Authorization"] = `Bearer ${session}`;
  const response = await fetch(path, {
    ...more,
    method,
    headers,
    credentials: "omit",
    cache: "no-store",
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Refused(response.status, await sentence(response));
  return response;
}

export async function get<T>(path: string): Promise<T> {
  return (await (await request("GET", path)).json()) as T;
}

export async function send<T>(method: "POST" | "PATCH" | "DELETE", path: string, body?: unknown): Promise<T> {
  return (await (await request(method, path, body)).json()) as T;
}

/** Bytes as they come, until the end or the signal. */
export async function read(path: string, signal: AbortSignal, take: (text: string) => void): Promise<void> {
  const response = await request("GET", path, undefined, { signal });
  await pump(response, take);
}

async function pump(response: Response, take: (text: string) => void): Promise<void> {
  const reader = response.body?.getReader();
  if (!reader) return;
  const decoder = new TextDecoder();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    take(decoder.decode(value, { stream: true }));
  }
}

const SILENT_MS = 40_000; // berthd speaks every 15 s, if only to say that it is there

/** What the stream tells of. */
export interface Listener {
  events(batch: Event[]): void;
  lagged(): void; // what came after the last one cannot be told any more
  others(seq: number): void; // something happened that we may not see
  forecast(forecast: ForecastEvent): void;
  open(): void;
}

/** The events after 'seq', until the connection or the signal ends. */
export async function events(seq: number, signal: AbortSignal, listener: Listener): Promise<void> {
  const cut = new AbortController();
  signal.addEventListener("abort", () => cut.abort());
  let heard = Date.now();
  const watch = setInterval(() => Date.now() - heard > SILENT_MS && cut.abort(), 5000);
  try {
    const headers = { "Last-Event-ID": String(seq) };
    const response = await request("GET", "/v1/events", undefined, { signal: cut.signal, headers });
    listener.open();
    let batch: Event[] = [];
    const lines = new Lines((name, data) => {
      if (name === "lagged") listener.lagged();
      else if (name === "others") listener.others((JSON.parse(data) as { seq: number }).seq);
      else if (name === "forecast") listener.forecast(JSON.parse(data) as ForecastEvent);
      else if (name === "") batch.push(JSON.parse(data) as Event);
    });
    await pump(response, (text) => {
      heard = Date.now();
      lines.take(text);
      if (batch.length > 0) listener.events(batch);
      batch = [];
    });
  } finally {
    clearInterval(watch);
  }
}
