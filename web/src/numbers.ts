// Sums and numbers as the engine has them (crates/judge), where it is not asked.

/** The sum, rounded once, as Python's `fsum` has it (Shewchuk 1997, "Adaptive precision floating-point arithmetic"). */
export function total(values: Iterable<number>): number {
  // Numbers that do not overlap, the least first; their sum is exact.
  let parts: number[] = [];
  for (const value of values) {
    let high = value;
    const lows: number[] = [];
    for (const part of parts) {
      const [larger, smaller] = Math.abs(high) < Math.abs(part) ? [part, high] : [high, part];
      high = larger + smaller;
      const low = smaller - (high - larger);
      if (low !== 0) lows.push(low);
    }
    parts = [...lows, high];
  }
  let sum = parts.pop() ?? 0;
  while (parts.length > 0) {
    const part = parts.pop() ?? 0;
    const before = sum;
    sum += part;
    const low = part - (sum - before);
    if (low === 0) continue;
    // In the middle between two numbers, what is left decides.
    const next = parts.at(-1) ?? 0;
    const twice = sum + 2 * low;
    return low * next > 0 && twice - sum === 2 * low ? twice : sum;
  }
  return sum;
}

/** The value with three significant digits. */
export function written(value: number): string {
  return value ? fixed(value, decimals(value, 3)) : "0";
}

function decimals(value: number, digits: number): number {
  if (value === 0) return 6;
  return Math.max(0, Math.min(6, digits - 1 - Math.floor(Math.log10(Math.abs(value)))));
}

/** So many decimals; what is exactly in the middle is rounded to the even digit, as Python does. */
function fixed(value: number, places: number): string {
  const rounded = value.toFixed(places);
  if (Math.abs(value) >= 1e15) return rounded;
  const exact = value.toFixed(100);
  const end = exact.indexOf(".") + 1 + places;
  const isMiddle = /^50*$/.test(exact.slice(end));
  return isMiddle && /[13579]$/.test(rounded) ? exact.slice(0, places === 0 ? end - 1 : end) : rounded;
}
