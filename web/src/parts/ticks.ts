// ticks.ts - where an axis has its marks, and lines their names.

const CLOCK = [
  0.001, 0.01, 0.1, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200,
  86400, 172800, 432000, 864000, 1728000, 4320000, 8640000,
];
const TIMES = [
  1e-3, 1e-2, 0.1, 1, 10, 60, 600, 3600, 21600, 86400, 604800, 2592000, 31536000,
];
const TIMES_BETWEEN = [
  2, 5, 20, 30, 120, 300, 1200, 1800, 7200, 10800, 43200, 172800, 259200, 1209600, 7776000,
];

function multiples(step: number, min: number, max: number): number[] {
  const marks: number[] = [];
  for (let i = Math.ceil(min / step - 1e-9); i * step <= max * (1 + 1e-12) + 1e-12; i++) marks.push(i * step + 0); // never −0
  return marks;
}

/** Multiples of 1, 2 or 5 times a power of ten, at most about 'count' of them. */
export function even(min: number, max: number, count: number): number[] {
  const rough = (max - min) / Math.max(1, count);
  if (!(rough > 0)) return [min];
  const power = 10 ** Math.floor(Math.log10(rough));
  const factor = [1, 2, 5, 10].find((f) => f * power >= rough * 0.999) ?? 10;
  return multiples(factor * power, min, max);
}

/** Whole seconds, minutes, hours or days. */
export function clock(min: number, max: number, count: number): number[] {
  const rough = (max - min) / Math.max(1, count);
  if (!(rough > 0)) return [min];
  const step = CLOCK.find((s) => s >= rough) ?? 8640000 * Math.ceil(rough / 8640000);
  return multiples(step, min, max);
}

/** Durations on a logarithmic axis: 1 s, 10 s, 1 min, 10 min, 1 h, …; finer where that is few. */
export function logTimes(min: number, max: number, count: number): number[] {
  const all = [...TIMES, ...TIMES_BETWEEN].sort((a, b) => a - b);
  return enough([TIMES, all], min, max, count);
}

/** Plain numbers on a logarithmic axis: powers of ten; finer where that is few. */
export function logNumbers(min: number, max: number, count: number): number[] {
  const powers: number[] = [];
  for (let e = Math.floor(Math.log10(min)) - 1; e <= Math.ceil(Math.log10(max)); e++) powers.push(e);
  const times = (factors: number[]): number[] => powers.flatMap((e) => factors.map((factor) => Number(`${factor}e${e}`)));
  return enough([times([1]), times([1, 3]), times([1, 2, 5])], min, max, count);
}

/** The finest of these, coarsest first, that is few enough; not finer than it takes to have five. */
function enough(tiers: readonly number[][], min: number, max: number, count: number): number[] {
  const inside = tiers.map((tier) => tier.filter((mark) => mark >= min * 0.999 && mark <= max * 1.001));
  const fitting = inside.filter((marks) => marks.length >= 2 && marks.length <= count);
  const coarse = inside[0] ?? [];
  if (coarse.length >= 5 || coarse.length >= count) return coarse;
  const best = fitting.find((marks) => marks.length >= 5) ?? fitting[fitting.length - 1];
  if (best) return best;
  if (coarse.length >= 2) return coarse;
  const fine = inside.find((marks) => marks.length >= 2) ?? [];
  const step = Math.ceil(fine.length / count);
  if (fine.length >= 2) return fine.filter((_, i) => i % step === 0);
  return even(min, max, count).filter((mark) => mark > 0);
}

/** Moves neighbours apart, keeping their order, until each has 'gap'; none leaves top..bottom. */
export function apart(places: readonly number[], gap: number, top: number, bottom: number): number[] {
  const order = places.map((_, i) => i).sort((a, b) => (places[b] ?? 0) - (places[a] ?? 0));
  const result = [...places];
  let below = bottom + gap;
  for (const i of order) below = result[i] = Math.min(places[i] ?? 0, below - gap);
  let above = top - gap;
  for (const i of order.reverse()) above = result[i] = Math.max(result[i] ?? 0, above + gap);
  return result;
}
