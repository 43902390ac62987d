import { type ComponentChildren, Fragment } from 'preact'
import { sanitizeLine } from '../../cli/text/sanitize.ts'
import { showTime } from '../../cli/text/time.ts'

/** Longer names, as node sets of a fleet, break anywhere: each break opportunity is an element. */
const longestBroken = 4_000

const stateTones: Record<string, string> = {
  ONLINE: 'good',
  SUCCESS: 'good',
  OPEN: 'good',
  DELIVERED: 'good',
  ENABLED: 'good',
  WARNING: 'warn',
  WAITING: 'warn',
  TIMEOUT: 'bad',
  FAILED: 'bad',
  LOST: 'bad',
  SUSPENDED: 'bad',
  GAVE_UP: 'bad',
  UNREACHABLE: 'bad',
  RUNNING: 'busy',
  OFFLINE: 'away',
  'NO LINK': 'away',
}

/** A name that can wrap after a dot, hyphen or similar. */
export function LongName({ text }: { text: string }) {
  const clean = sanitizeLine(text)
  const parts = clean.length > longestBroken ? [clean] : clean.split(/(?<=[.,_:/@-])/)
  return (
    <span class="long-name">
      {parts.map((part, at) => (
        <Fragment key={at}>
          {at > 0 && <wbr />}
          {part}
        </Fragment>
      ))}
    </span>
  )
}

export const toneOf = (state: string): string => stateTones[state] ?? 'quiet'

/** A state as a dot and a word, so that colour is never the only cue. */
export function Badge({ state }: { state: string }) {
  return <span class={`badge ${toneOf(state)}`}>{state.toLowerCase().replaceAll('_', ' ')}</span>
}

/** Local time in the format of the command line; with its offset on hover. */
export function Time({ at }: { at: string | null }) {
  if (at === null) return '–'
  const whole = showTime(at, false)
  return (
    <time dateTime={at} title={whole}>
      {whole.slice(0, 'YYYY-MM-DD hh:mm:ss'.length)}
    </time>
  )
}

/** Seconds as `0:07`, `12:34`, `1:02:03`. */
export function shownClock(seconds: number): string {
  const whole = Math.floor(seconds)
  const two = (count: number) => String(count).padStart(2, '0')
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60]
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`
}

/** Error text, announced by screen readers; invisible if empty. */
export function Fault({ text }: { text: string }) {
  return (
    <p role="alert" class="fault">
      {text}
    </p>
  )
}

interface FactsProps {
  /** Rows with null are omitted. */
  rows: readonly (readonly [label: string, value: ComponentChildren | null])[]
}

export function Facts({ rows }: FactsProps) {
  return (
    <dl class="facts">
      {rows.map(
        ([label, value]) =>
          value !== null && (
            <div key={label}>
              <dt>{label}</dt>
              <dd>{value}</dd>
            </div>
          ),
      )}
    </dl>
  )
}
