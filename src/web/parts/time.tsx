import { showTime } from '../../cli/text/time.ts'

/** Local time in the command line's form; with its offset where one points at it. */
export function Time({ at }: { at: string | null }) {
  if (at === null) return '–'
  const whole = showTime(at, false)
  return (
    <time dateTime={at} title={whole}>
      {whole.slice(0, 'YYYY-MM-DD hh:mm:ss'.length)}
    </time>
  )
}

/** `0:07`, `12:34`, `1:02:03`, of seconds, as players show it. */
export function shownClock(seconds: number): string {
  const whole = Math.floor(seconds)
  const two = (count: number) => String(count).padStart(2, '0')
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60]
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`
}
