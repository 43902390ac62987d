import { type ShownStatus, shownStatus } from '../../../core/hosts/host-status.ts'
import type { Host } from '../../../core/protocol/http/hosts.ts'
import { compareNatural } from '../../../core/selector/natural-order.ts'
import type { ResultStatus, TaskResult } from '../../../core/tasks/task.ts'
import { sanitizeLine } from '../../text/sanitize.ts'
import type { Style } from '../screen/screen.ts'
import type { Glyph } from './drawing.ts'

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
export function inOrder(rows: readonly HostRow[]): HostRow[] {
  return [...rows].sort((a, b) => a.rank - b.rank || compareNatural(a.name, b.name))
}
