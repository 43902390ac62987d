import { showBytes } from '../text/bytes.ts'
import { isUtf8 } from '../text/screen.ts'
import { showDuration } from '../text/time.ts'

/** Less time says little about a rate, in milliseconds. */
const firstRate = 1_000

/** `12.3 MB of 1.0 GB · 35.2 MB/s · 28 s left`; without `of` where nobody knows how much there is. */
export function transferText(bytes: number, size: number | null, milliseconds: number): string {
  const parts = [size === null ? showBytes(bytes) : `${showBytes(bytes)} of ${showBytes(size)}`]
  if (milliseconds >= firstRate && bytes > 0) {
    const rate = bytes / (milliseconds / 1000)
    parts.push(`${showBytes(rate)}/s`)
    if (size !== null && size > bytes) {
      const left = Math.ceil((size - bytes) / rate)
      parts.push(`${left < 60 ? `${left} s` : showDuration(left * 1000)} left`)
    }
  }
  return parts.join(isUtf8() ? ' · ' : ' | ')
}
