// format.ts - numbers as people say them.

const MISSING = "–";

/** How many decimals show three significant digits. */
function decimalsOf(value: number): number {
  const size = Math.abs(value);
  if (size >= 100 || size < 1e-9) return 0;
  return Math.min(6, Math.max(0, 2 - Math.floor(Math.log10(size))));
}

/** A count or a mark: 8, 12 340; three significant digits where it is not whole. */
export function plain(value: number): string {
  if (!Number.isFinite(value)) return MISSING;
  return fixed(value, Number.isInteger(value) ? 0 : decimalsOf(value));
}

/** A mark on an axis: no more decimals than it has. */
export function mark(value: number): string {
  const exact = Number(value.toPrecision(6));
  return fixed(exact, (String(exact).split(".")[1] ?? "").length);
}

/** So many decimals, thousands apart, a real minus sign. */
export function fixed(value: number, decimals: number): string {
  const [whole = "0", rest] = Math.abs(value).toFixed(decimals).split(".");
  const grouped = whole.length > 4 ? whole.replace(/\B(?=(\d{3})+$)/g, "\u202f") : whole;
  const sign = value < 0 && Number(Math.abs(value).toFixed(decimals)) !== 0 ? "−" : "";
  return sign + grouped + (rest === undefined ? "" : `.${rest}`);
}

/** What values are divided by and what stands behind them. */
export interface Scale {
  divisor: number;
  suffix: string;
  counts?: boolean; // whole by nature
}

const TIMES: readonly Scale[] = [
  { divisor: 86400, suffix: " d" },
  { divisor: 3600, suffix: " h" },
  { divisor: 60, suffix: " min" },
  { divisor: 1, suffix: " s" },
  { divisor: 1e-3, suffix: " ms" },
  { divisor: 1e-6, suffix: " µs" },
];

const ROUNDS: readonly Scale[] = [
  { divisor: 1e9, suffix: " G" },
  { divisor: 1e6, suffix: " M" },
];

function firstThatFits(scales: readonly Scale[], size: number, atLeast: number): Scale | undefined {
  return scales.find((scale) => size >= atLeast * scale.divisor);
}

/** How to show a value of about 'size' in a unit. */
export function scaleFor(unit: string, size: number): Scale {
  const abs = Math.abs(size);
  switch (unit) {
    case "s":
      return firstThatFits(TIMES, abs, 1.5) ?? { divisor: 1, suffix: " s" };
    case "us":
      return firstThatFits(TIMES, abs * 1e-6, 1.5) ? shifted(abs) : { divisor: 1, suffix: " µs" };
    case "gpu_s":
    case "GPU-s":
      return abs < 900 ? { divisor: 1, suffix: " GPU s" } : { divisor: 3600, suffix: " GPU h" };
    case "gpu_h":
      return { divisor: 1, suffix: " GPU h" };
    case "fraction":
    case "ratio":
    case "share":
      return { divisor: 0.01, suffix: " %" };
    case "usd":
      return { divisor: 1, suffix: " $" };
    case "x":
      return { divisor: 1, suffix: "×" };
    case "":
    case "count":
    case "jobs":
      return firstThatFits(ROUNDS, abs, 10) ?? { divisor: 1, suffix: "", counts: true };
    default:
      return { divisor: 1, suffix: ` ${unit}` };
  }
}

/** One scale for numbers that are compared, so that a row does not mix minutes and hours. */
export function scaleForAll(unit: string, values: readonly number[]): Scale {
  const sizes = values.map(Math.abs).filter((size) => size > 0 && Number.isFinite(size));
  return scaleFor(unit, sizes.length > 0 ? Math.sqrt(Math.min(...sizes) * Math.max(...sizes)) : 0);
}

function shifted(micros: number): Scale {
  const scale = firstThatFits(TIMES, micros * 1e-6, 1.5) ?? { divisor: 1e-6, suffix: " µs" };
  return { divisor: scale.divisor * 1e6, suffix: scale.suffix };
}

/** In that scale, with as many decimals as 'like' needs (an interval like its mean). */
export function inScale(value: number, scale: Scale, like = value): string {
  if (!Number.isFinite(value)) return MISSING;
  if (scale.counts && Number.isInteger(like) && Number.isInteger(value)) return plain(value);
  return fixed(value / scale.divisor, decimalsOf(like / scale.divisor));
}

export function scaled(value: number, scale: Scale): string {
  return inScale(value, scale) + (Number.isFinite(value) ? scale.suffix : "");
}

/** 12.3 min, 4.1 h, 87 %. */
export function amount(value: number, unit: string): string {
  return scaled(value, scaleFor(unit, value));
}

/** A moment on a clock that starts at zero, in so many parts: 45 s, 3 h 20 min, 2 d 4 h. */
export function moment(seconds: number, most = 2): string {
  const sign = seconds < 0 ? "−" : "";
  let left = Math.abs(seconds);
  if (left < 60) return `${sign}${plain(left)} s`;
  left = Math.round(left);
  const parts: [number, string][] = [
    [Math.floor(left / 86400), "d"],
    [Math.floor(left / 3600) % 24, "h"],
    [Math.floor(left / 60) % 60, "min"],
    [left % 60, "s"],
  ];
  const first = parts.findIndex(([count]) => count > 0);
  const shown = parts.slice(first, first + most).filter(([count]) => count > 0);
  return sign + shown.map(([count, name]) => `${count} ${name}`).join(" ");
}

/** The change from one value to another: −23 %, +4.1 %, ×12, ÷30. */
export function change(from: number, to: number): string {
  if (!Number.isFinite(from) || !Number.isFinite(to) || from === 0) return "";
  const part = to / from - 1;
  if (part >= 9) return `×${plain(to / from)}`;
  if (part <= -0.9 && to > 0) return `÷${plain(from / to)}`;
  if (Math.abs(part) < 5e-4) return "±0 %";
  const percent = Math.abs(part) * 100;
  return `${part < 0 ? "−" : "+"}${percent >= 10 ? fixed(percent, 0) : fixed(percent, 1)} %`;
}

/** Words on at most so many lines of so many letters; what does not fit is cut. */
export function wrap(text: string, letters: number, most: number): string {
  const cut = (line: string): string => (line.length > letters ? `${line.slice(0, Math.max(1, letters - 1))}…` : line);
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const last = lines[lines.length - 1];
    if (last !== undefined && (last.length + 1 + word.length <= letters || lines.length === most))
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines.map(cut).join("\n");
}

/** A moment of the day: 14:05, with seconds where marks are closer, with the day where it is another. */
export function clockTime(seconds: number, step = 60): string {
  const at = new Date(seconds * 1000);
  const two = (value: number): string => String(value).padStart(2, "0");
  const time = `${two(at.getHours())}:${two(at.getMinutes())}`;
  if (step < 60) return `${time}:${two(at.getSeconds())}`;
  return step >= 86400 ? `${at.getDate()} ${MONTHS[at.getMonth()] ?? ""}` : time;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/** A moment in a table: the time today, the day before that. */
export function dayTime(seconds: number, now: number): string {
  const [at, today] = [new Date(seconds * 1000), new Date(now * 1000)];
  const time = clockTime(seconds, 1);
  if (at.toDateString() === today.toDateString()) return time;
  const year = at.getFullYear() === today.getFullYear() ? "" : ` ${at.getFullYear()}`;
  return `${at.getDate()} ${MONTHS[at.getMonth()] ?? ""}${year} ${time.slice(0, 5)}`;
}

/** How long, in few letters: 45 s, 12 min, 3.2 h, 2.1 d. */
export function span(seconds: number): string {
  const s = Math.max(0, seconds);
  if (s < 0.95) return `${Math.round(s * 10) / 10} s`;
  if (s < 99.5) return `${Math.round(s)} s`;
  if (s < 5970) return `${Math.round(s / 60)} min`;
  if (s < 172800) return `${fixed(s / 3600, 1)} h`;
  return `${fixed(s / 86400, 1)} d`;
}

/** GPU time that was lost: 0.3 GPU s, 4.2 GPU min, 1.6 GPU h. */
export function gpuTime(seconds: number): string {
  const scale = [3600, 60, 1].find((divisor) => seconds >= 1.5 * divisor) ?? 1;
  const value = Math.round((10 * seconds) / scale) / 10;
  return `${fixed(value, Number.isInteger(value) || value >= 100 ? 0 : 1)} GPU ${{ 3600: "h", 60: "min", 1: "s" }[scale] ?? ""}`;
}
