import type { Column } from './table.ts'

const two = (value: number) => String(Math.abs(Math.trunc(value))).padStart(2, '0')

/** Local time with its offset, or UTC (contract §9): `2026-11-21 03:25:15+01:00`, `2026-11-21 02:25:15Z`. */
export function showTime(iso: string | null, utc: boolean): string {
  if (iso === null) return '-'
  const date = new Date(iso)
  if (Number.isNaN(date.getTime())) return '-'
  if (utc) return `${date.toISOString().slice(0, 19).replace('T', ' ')}Z`
  const offset = -date.getTimezoneOffset()
  const day = `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`
  const time = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`
  return `${day} ${time}${offset < 0 ? '-' : '+'}${two(offset / 60)}:${two(offset % 60)}`
}

/** Converts the times in a sentence of a server or agent to local time. */
export function withLocalTimes(sentence: string): string {
  return sentence.replace(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g, (iso) => {
    const shown = showTime(iso, false)
    return shown === '-' ? iso : shown
  })
}

const dayMs = 24 * 3600_000
/** Days up to which an age is shown instead of a date. */
const countedDays = 99

/** As `showTime` in at most 10 characters: `16:40:57` today, `3d ago` before. */
export function showShortTime(iso: string | null, utc: boolean, now: Date = new Date()): string {
  const whole = showTime(iso, utc)
  if (iso === null || whole === '-') return whole
  const day = whole.slice(0, 10)
  const days = Math.round(
    (Date.parse(showTime(now.toISOString(), utc).slice(0, 10)) - Date.parse(day)) / dayMs,
  )
  if (days === 0) return whole.slice(11, 19)
  return days > 0 && days <= countedDays ? `${days}d ago` : day
}

/** A column of times, shortened if rows do not fit; a dash for `null`; `text` may replace a time. */
export function timeColumn<Row>(
  heading: string,
  at: (row: Row) => string | null,
  utc: boolean,
  text: (row: Row) => string | undefined = () => undefined,
): Column<Row> {
  return {
    heading,
    value: (row) => text(row) ?? showTime(at(row), utc),
    short: (row) => text(row) ?? showShortTime(at(row), utc),
    uncut: true,
  }
}

/** `350 ms`, `1.2 s`, `2 min 5 s`, `3 h 4 min`. */
export function showDuration(milliseconds: number | null): string {
  if (milliseconds === null) return '-'
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`
  const seconds = milliseconds / 1000
  if (seconds < 60) return `${seconds.toFixed(1)} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
}
