import { type ComponentChildren, Fragment } from 'preact'
import { useLayoutEffect, useRef } from 'preact/hooks'
import { foldStanding } from '../../cli/hosts/standing.ts'
import { counted } from '../../cli/text/amounts.ts'
import { sanitizeLine } from '../../cli/text/sanitize.ts'
import { showTime } from '../../cli/text/time.ts'
import { canBeReached } from '../../core/hosts/host-status.ts'
import type { Host } from '../../core/protocol/http/hosts.ts'
import { foldNodeset } from '../../core/selector/nodeset.ts'
import { fieldsOf } from './field.tsx'

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

type ListedHost = Pick<Host, 'hostname' | 'status' | 'statusReason' | 'agent'>

interface HostSetProps {
  hosts: readonly ListedHost[]
  /** Total number, if `hosts` are only the first. */
  count?: number
}

function NodeSet({ text }: { text: string }) {
  return (
    <span class="nodeset">
      <LongName text={text} />
    </span>
  )
}

export function HostNames({ names }: { names: readonly string[] }) {
  return (
    <div class="host-set">
      <NodeSet text={foldNodeset(names)} />
    </div>
  )
}

/** Hosts as a node set with their number, and the states of those that cannot be reached now. */
export function HostSet({ hosts, count = hosts.length }: HostSetProps) {
  const rest = count - hosts.length
  const away = foldStanding(hosts.filter((host) => !canBeReached(host)))
  return (
    <div class="host-set">
      <p>
        <strong>{counted(count, 'host')}</strong>{' '}
        <NodeSet text={foldNodeset(hosts.map(({ hostname }) => hostname))} />
        {rest > 0 && ` and ${rest} more`}
      </p>
      {away.map(({ names, state }) => (
        <p key={state} class="away">
          <NodeSet text={names} />: {sanitizeLine(state)}
        </p>
      ))}
    </div>
  )
}

interface QuestionProps {
  title: string
  /** Labels of the buttons that confirm and cancel. */
  yes: string
  no: string
  isDangerous?: boolean
  onYes: (field: (name: string) => string) => void
  onNo: () => void
  children?: ComponentChildren
}

/** Confirmation dialog. The cancel button has the focus; Escape cancels too. */
export function Question({ title, yes, no, isDangerous = false, onYes, onNo, children }: QuestionProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog
      ref={dialog}
      aria-labelledby="question"
      onCancel={(event) => {
        event.preventDefault()
        onNo()
      }}
    >
      <form
        onSubmit={(event) => {
          event.preventDefault()
          onYes(fieldsOf(event.currentTarget))
        }}
      >
        <h2 id="question">{title}</h2>
        {children}
        <div class="actions">
          <span class="spring" />
          <button type="button" autoFocus onClick={onNo}>
            {no}
          </button>
          <button type="submit" class={isDangerous ? 'danger' : 'primary'}>
            {yes}
          </button>
        </div>
      </form>
    </dialog>
  )
}
