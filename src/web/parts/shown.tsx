import { type ComponentChildren, Fragment } from 'preact'
import { sanitizeLine } from '../../cli/text/sanitize.ts'
import { showTime } from '../../cli/text/time.ts'

/** Characters of a name; a longer one, as the node set of a fleet, breaks anywhere, because each place to break is an element. */
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

/** A name that goes on in the next line behind a dot, a hyphen or the like, where there is not enough room for it. */
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

/** The class of a state's colour. */
export const toneOf = (state: string): string => stateTones[state] ?? 'quiet'

/** A state as a word with a dot: never by its colour alone. */
export function Badge({ state }: { state: string }) {
  return <span class={`badge ${toneOf(state)}`}>{state.toLowerCase().replaceAll('_', ' ')}</span>
}

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

/** What went wrong, told to screen readers as it comes; nothing is seen of an empty one. */
export function Fault({ text }: { text: string }) {
  return (
    <p role="alert" class="fault">
      {text}
    </p>
  )
}

interface FactsProps {
  /** Null: nothing is said of it. */
  rows: readonly (readonly [label: string, value: ComponentChildren | null])[]
}

/** What there is to know of one thing, by name. */
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
