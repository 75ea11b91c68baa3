// ansi.ts - a program's output as plain text: colours and cursor movements taken out.

// Escape sequences: CSI (colours, movements), OSC (titles, links), and short ones.
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\|$)|[PX^_][^\u001b]*(?:\u001b\\|$)|[ -/]*[0-~])|\u009b[0-?]*[ -/]*[@-~]/g;
const CONTROLS = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;

/** What a progress bar wrote over itself with carriage returns: only the last of it. */
function lastOf(line: string): string {
  const text = line.replace(/\r+$/, "");
  return text.slice(text.lastIndexOf("\r") + 1);
}

export function plainText(text: string): string {
  return text.replace(ESCAPES, "").split("\n").map(lastOf).join("\n").replace(CONTROLS, "");
}
