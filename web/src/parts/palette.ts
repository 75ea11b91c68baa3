// palette.ts - how to tell policies and jobs apart, also without seeing colours.
//
// Policies take Okabe and Ito's colours (in the style sheet, --policy-0 …) and a dash each;
// seven colours and five dashes make 35 pairs before one comes again.  Their bars have stripes
// for dashes.

import { h, styled } from "./dom";
import { colour, isDark } from "./theme";

export const COLOURS = 7;
const DASHES: readonly (readonly number[])[] = [[], [9, 4], [2, 3], [10, 3, 2, 3], [16, 4]];
const STRIPES: readonly (number | undefined)[] = [undefined, 45, 0, 135, 90];

export function policyColour(index: number): string {
  return colour(`policy-${index % COLOURS}`);
}

/** The same for a style, which follows the theme by itself. */
export function policyVariable(index: number): string {
  return `var(--policy-${index % COLOURS})`;
}

export function policyDash(index: number): readonly number[] {
  return DASHES[index % DASHES.length] ?? [];
}

/** A short piece of a policy's line, as in the charts. */
export function swatch(index: number, dash = policyDash(index)): HTMLElement {
  const ink = policyVariable(index);
  const stops: string[] = [];
  let at = 0;
  dash.forEach((length, i) => {
    stops.push(`${i % 2 === 0 ? ink : "transparent"} ${at}px ${at + length}px`);
    at += length;
  });
  const background = dash.length > 0 ? `repeating-linear-gradient(90deg, ${stops.join(", ")})` : ink;
  return styled(h("span", { class: "swatch", "aria-hidden": "true" }), { background });
}

/** In which direction a policy's bars are striped, in degrees; undefined: not at all. */
export function policyStripes(index: number): number | undefined {
  return STRIPES[index % STRIPES.length];
}

/** A small piece of a policy's bar, as in the charts. */
export function barSwatch(index: number): HTMLElement {
  const ink = policyVariable(index);
  const angle = policyStripes(index);
  const stripes = `${ink} 0 3px, color-mix(in srgb, ${ink} 45%, var(--card)) 3px 5px`;
  const background = angle === undefined ? ink : `repeating-linear-gradient(${180 - angle}deg, ${stripes})`;
  return styled(h("span", { class: "swatch block", "aria-hidden": "true" }), { background });
}

/** The mark of a published value, as in the charts. */
export function diamond(index: number): HTMLElement {
  const mark = styled(h("i", {}), { background: policyVariable(index) });
  return h("span", { class: "swatch diamond", "aria-hidden": "true" }, mark);
}

/** Spreads neighbouring ids over 0..1. */
function scatter(id: number, salt: number): number {
  return ((id * 0.6180339887 + salt) % 1 + 1) % 1;
}

/**
 * A job's colour, always the same for the same id.  The class chooses the family: blue to
 * green for best effort, yellow to red for trials; hue and lightness within it tell jobs apart.
 */
export function jobColour(job: number, kind: number): string {
  const hue = kind === 1 ? 14 + 34 * scatter(job, 0.1) : 165 + 95 * scatter(job, 0.1);
  const step = Math.floor(5 * scatter(job * 3 + 1, 0.4));
  const dim = Math.max(0, hue - 205) / 3; // blue looks darker than green of equal lightness
  const lightness = (isDark() ? 46 : 50) + 5.5 * step + dim;
  const saturation = kind === 1 ? 88 : 48;
  return `hsl(${hue.toFixed(0)} ${saturation}% ${lightness.toFixed(0)}%)`;
}
