import { showBytes } from '../text/bytes.ts'
import { showDuration } from '../text/time.ts'

/**
 * `12.3 MB of 1.0 GB`, `35.2 MB/s`, `28 s left`; without `of` where nobody knows how much there is, and without the rate, in
 * bytes a second, until one is known.
 */
export function transferParts(bytes: number, size: number | null, rate: number | null): string[] {
  const parts = [size === null ? showBytes(bytes) : `${showBytes(bytes)} of ${showBytes(size)}`]
  if (rate === null || rate <= 0) return parts
  parts.push(`${showBytes(rate)}/s`)
  if (size !== null && size > bytes) {
    const left = Math.ceil((size - bytes) / rate)
    parts.push(`${left < 60 ? `${left} s` : showDuration(left * 1000)} left`)
  }
  return parts
}
