/** `512 B`, `18.2 kB`, `1.3 MB`. */
export function showBytes(value: number): string {
  const units = ['B', 'kB', 'MB', 'GB']
  let size = value
  let unit = 0
  while (size >= 999.5 && unit < units.length - 1) {
    size /= 1000
    unit += 1
  }
  return `${unit === 0 ? Math.round(size) : size.toFixed(1)} ${units[unit]}`
}

/** `1 host`, `3 hosts`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
