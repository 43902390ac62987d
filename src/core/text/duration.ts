const units: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400 }

/** Seconds of `90`, `90s`, `5m`, `1h30m` (contract §9); null if the text is not a duration. */
export function durationSeconds(text: string): number | null {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text)
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)([smhd])/gy)]
  if (parts.length === 0 || parts.map((part) => part[0]).join('') !== text) return null
  return parts.reduce((sum, part) => sum + Number(part[1]) * (units[part[2] ?? ''] ?? 1), 0)
}

/** `90s`, `5m`: seconds in the largest unit that divides them. */
export function durationText(seconds: number): string {
  const [unit, size] = Object.entries(units).findLast(([, each]) => seconds > 0 && seconds % each === 0) ?? [
    's',
    1,
  ]
  return `${seconds / size}${unit}`
}
