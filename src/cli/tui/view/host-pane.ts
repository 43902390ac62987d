import { type ShownStatus, shownStatus } from '../../../core/hosts/host-status.ts'
import type { Host } from '../../../core/protocol/http/hosts.ts'
import { compareNatural } from '../../../core/selector/natural-order.ts'
import type { ResultStatus, TaskResult } from '../../../core/tasks/task.ts'
import { sanitizeLine } from '../../text/sanitize.ts'
import { widthOf } from '../../text/width.ts'
import type { Span, Style } from '../screen/screen.ts'
import { chosenRow, fit, fitRight, type Glyph, glyph } from './drawing.ts'
import { List } from './list.ts'

export interface HostRow {
  readonly id: number
  readonly name: string
  readonly mark: Glyph
  readonly state: string
  readonly time: string
  readonly style: Style
  /** Rows with the lowest rank come first. */
  readonly rank: number
}

/** Id of the row above the hosts that stands for all of them. */
export const allHosts = 0

const markWidth = 2
/** States are shown if at least this many columns remain for names. */
const leastName = 10
/** Quantile of the name widths that determines the column width … */
const usual = 0.9
/** … plus these columns; wider names are cut, to leave room for the log. */
const tolerated = 8
const all = '  all hosts'

function usualWidth(widths: readonly number[]): number {
  const sorted = [...widths].sort((a, b) => a - b)
  const most = (sorted[Math.floor(usual * (sorted.length - 1))] ?? 0) + tolerated
  return sorted.findLast((width) => width <= most) ?? 0
}

export class HostPane {
  readonly list = new List<number>()
  #filter = ''
  #rows = new Map<number, HostRow>()

  /** Widest so far, because a width that changes with each row would flicker. */
  #stateWidth = 0
  #timeWidth = 0
  /** In columns; longer names are cut. */
  nameWidth = 0

  get wanted(): number {
    const columns = [this.nameWidth, this.#stateWidth, this.#timeWidth].filter((width) => width > 0)
    const rows = markWidth + columns.reduce((sum, width) => sum + width + 1, 0)
    return Math.max(rows, all.length + String(this.count).length + 2)
  }

  get shownCount(): number {
    return this.list.ids.length - 1
  }

  get count(): number {
    return this.#rows.size
  }

  row(id: number): HostRow | undefined {
    return this.#rows.get(id)
  }

  get filter(): string {
    return this.#filter
  }

  set filter(text: string) {
    this.#filter = text
    this.#narrow()
  }

  set(rows: readonly HostRow[]): void {
    this.#rows = new Map(rows.map((row) => [row.id, row]))
    this.nameWidth = usualWidth(rows.map(({ name }) => widthOf(name)))
    for (const { state, time } of rows) {
      this.#stateWidth = Math.max(this.#stateWidth, state.length)
      this.#timeWidth = Math.max(this.#timeWidth, time.length)
    }
    this.#narrow()
  }

  #narrow(): void {
    const sought = this.#filter.toLowerCase()
    const fits = ({ name, state }: HostRow) =>
      sought === '' || name.toLowerCase().includes(sought) || state.toLowerCase().includes(sought)
    this.list.set([allHosts, ...inOrder([...this.#rows.values()].filter(fits)).map(({ id }) => id)])
  }

  /** Chooses the nearest matching host below or above, wrapping around; returns false if there is none. */
  jump(direction: 'up' | 'down', fits: (row: HostRow) => boolean): boolean {
    const { ids, chosen } = this.list
    const at = chosen === null ? 0 : ids.indexOf(chosen)
    const after = [...ids.slice(at + 1), ...ids.slice(0, at)]
    const order = direction === 'down' ? after : after.reverse()
    const found = order.find((id) => {
      const row = this.#rows.get(id)
      return row !== undefined && fits(row)
    })
    if (found !== undefined) this.list.choose(found)
    return found !== undefined
  }

  rows(width: number, height: number, isFocused: boolean): Span[][] {
    if (width <= 0) return []
    return this.list.shown(height).map((id) => {
      const spans = id === allHosts ? this.#all(width) : this.#host(id, width)
      return id === this.list.chosen ? chosenRow(spans, width, isFocused) : spans
    })
  }

  #all(width: number): Span[] {
    const count = String(this.shownCount)
    return [{ text: fit(all, width - count.length - 1), style: { bold: true } }, { text: `${count} ` }]
  }

  #host(id: number, width: number): Span[] {
    const row = this.#rows.get(id)
    if (row === undefined) return []
    const { mark, name, state, time, style } = row
    const [stateWidth, timeWidth] = [this.#stateWidth, this.#timeWidth]
    const room = width - markWidth - 1 - (timeWidth > 0 ? timeWidth + 1 : 0)
    const hasState = room - stateWidth - 1 >= Math.min(this.nameWidth, leastName)
    return [
      { text: `${glyph(mark)} `, style },
      { text: fit(name, hasState ? room - stateWidth - 1 : room) },
      ...(hasState ? [{ text: ` ${fit(state, stateWidth)}`, style }] : []),
      { text: timeWidth > 0 ? ` ${fitRight(time, timeWidth)} ` : ' ', style: { dim: true } },
    ]
  }
}

interface HostGlyph {
  readonly mark: Glyph
  readonly rank: number
  readonly style: Style
}

const bad: Style = { fg: 'red' }

const resultGlyphs: Readonly<Record<ResultStatus, HostGlyph>> = {
  FAILED: { mark: 'failed', rank: 0, style: bad },
  TIMEOUT: { mark: 'failed', rank: 0, style: bad },
  LOST: { mark: 'lost', rank: 0, style: bad },
  UNREACHABLE: { mark: 'lost', rank: 0, style: bad },
  RUNNING: { mark: 'running', rank: 1, style: { fg: 'cyan' } },
  PENDING: { mark: 'pending', rank: 2, style: { dim: true } },
  CANCELLED: { mark: 'stopped', rank: 3, style: { fg: 'yellow' } },
  SKIPPED: { mark: 'stopped', rank: 3, style: { fg: 'yellow' } },
  SUCCESS: { mark: 'success', rank: 4, style: { fg: 'green' } },
}

export const statusGlyphs: Readonly<Record<ShownStatus, HostGlyph>> = {
  'NO LINK': { mark: 'lost', rank: 0, style: bad },
  OFFLINE: { mark: 'failed', rank: 0, style: bad },
  WARNING: { mark: 'warning', rank: 1, style: { fg: 'yellow' } },
  ONLINE: { mark: 'success', rank: 2, style: { fg: 'green' } },
}

/** `0.4s`, `12s`, `3m05s`, `2h07m`, `4d`: at most six columns. */
export function shortTime(milliseconds: number): string {
  const seconds = Math.max(0, milliseconds) / 1000
  const two = (value: number) => String(Math.floor(value)).padStart(2, '0')
  if (seconds < 10) return `${seconds.toFixed(1)}s`
  if (seconds < 60) return `${Math.floor(seconds)}s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)}m${two(seconds % 60)}s`
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}h${two((seconds % 3600) / 60)}m`
  return `${Math.floor(seconds / 86_400)}d`
}

/** `now`: milliseconds since the epoch, to compute running times. */
export function resultRow(result: TaskResult, now: number): HostRow {
  const { hostId, hostname, status, exitCode, duration, startedAt, phase, verify } = result
  const failure = verify && verify.status !== 'SUCCESS' ? 'verify failed' : `exit ${exitCode ?? '?'}`
  const isRunning = status === 'RUNNING' && startedAt !== null
  const isGate = isRunning && (phase === 'VERIFY' || phase === 'ROLLBACK')
  const took = isRunning ? now - Date.parse(startedAt) : duration
  return {
    id: hostId,
    name: sanitizeLine(hostname),
    state: status === 'FAILED' ? failure : isGate ? phase : status,
    time: took === null ? '' : shortTime(took),
    ...resultGlyphs[status],
  }
}

/** Empty unless OFFLINE or not linked: heartbeats send no events, so the time would be stale. */
function silence(host: Host, now: number): string {
  const { status, agent } = host
  if (shownStatus(host) === 'NO LINK' && agent?.linkLostAt != null)
    return shortTime(Math.max(0, now - Date.parse(agent.linkLostAt)))
  if (status !== 'OFFLINE') return ''
  const heard = agent?.lastHeartbeatAt ?? null
  return heard === null ? 'never' : shortTime(Math.max(0, now - Date.parse(heard)))
}

export function fleetRow(host: Host, now: number): HostRow {
  const state = shownStatus(host)
  return {
    id: host.id,
    name: sanitizeLine(host.hostname),
    time: silence(host, now),
    state,
    ...statusGlyphs[state],
  }
}

/** Failures first, then running and pending hosts; naturally sorted by name within. */
function inOrder(rows: readonly HostRow[]): HostRow[] {
  return [...rows].sort((a, b) => a.rank - b.rank || compareNatural(a.name, b.name))
}
