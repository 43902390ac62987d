/** FNV-1a, 32 bits: spreads well enough, and is the same on every server. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193) >>> 0
  return value
}

/** Milliseconds by which a slot is put off: always the same for this slot of this schedule, and less than `bound`. */
export function jitterOf(scheduleId: number, plannedAt: number, bound: number): number {
  return bound <= 0 ? 0 : hash(`${scheduleId}/${plannedAt}/`) % bound
}
