import {
  canBeReached,
  reasonNow,
  type ShownStatus,
  shownStatus,
  shownStatuses,
} from '../../../core/hosts/host-status.ts'
import type { Host } from '../../../core/protocol/http/hosts.ts'
import type { TaskSummary } from '../../../core/protocol/http/tasks.ts'
import { foldNodeset } from '../../../core/selector/nodeset.ts'
import { shortened } from '../../../core/text/pieces.ts'
import { standingOf } from '../../hosts/standing.ts'
import { showTags } from '../../hosts/view.ts'
import { tallyOf } from '../../task/task-state.ts'
import { counted } from '../../text/amounts.ts'
import { sanitizeLine } from '../../text/sanitize.ts'
import { withOwnMark } from '../../text/screen.ts'
import { widthOf } from '../../text/width.ts'
import type { FleetState } from '../fleet-state.ts'
import { partsOf } from '../log/viewport.ts'
import type { Row, Span, Style } from '../screen/screen.ts'
import { fit, fitRight, type Glyph, glyph, type Keys, progressRow, spread, widthOfSpans } from './drawing.ts'
import { shortTime, statusGlyphs } from './host-pane.ts'

const narrowPane = 60

/** Last characters of an id, which commands accept in its place. */
const shortId = 6
const longestUser = 10
/** Columns for the script's name before the user is shown, and then the id. */
const leastName = 12

const longestNames = 400
const widestQuestion = 70

export const taskGlyphs: Readonly<Record<TaskSummary['status'], { mark: Glyph; style: Style }>> = {
  RUNNING: { mark: 'running', style: { fg: 'cyan' } },
  SUCCESS: { mark: 'success', style: { fg: 'green' } },
  FAILED: { mark: 'failed', style: { fg: 'red' } },
  CANCELLED: { mark: 'stopped', style: { fg: 'yellow' } },
}
const shares = shownStatuses.toReversed()

export function fleetTitle(state: FleetState, server: string, cols: number): Row {
  const running = state.tasks.filter(({ status }) => status === 'RUNNING').length
  const back = `  ${counted(running, 'task')} running `
  return spread(
    cols,
    [{ text: ' rsm', style: { bold: true } }, { text: `  ${sanitizeLine(server)}` }],
    [{ text: back, style: running > 0 ? { fg: 'cyan', bold: true } : { dim: true } }],
  )
}

export function fleetProgress(state: FleetState, cols: number): Row {
  const all = state.hosts.size
  const parts = shares.map((status) => ({
    count: countOf(state, status),
    status,
    style: statusGlyphs[status].style,
  }))
  const spans: Span[] = [
    { text: ` ${counted(all, 'host')}`, style: { bold: true } },
    ...parts.flatMap(({ count, status, style }): Span[] =>
      count === 0 ? [] : [{ text: `  ${count} ${status}`, style }],
    ),
    { text: ' ' },
  ]
  return progressRow(cols, spans, parts, all)
}

function countOf({ hosts }: FleetState, status: ShownStatus): number {
  let count = 0
  for (const host of hosts.values()) if (shownStatus(host) === status) count++
  return count
}

/** One row per task, with aligned columns; in a narrow pane only the mark shows the status. */
export function taskRows(tasks: readonly TaskSummary[], width: number, now: number): Span[][] {
  const isNarrow = width < narrowPane
  const widest = (shown: (task: TaskSummary) => string) =>
    tasks.reduce((most, task) => Math.max(most, shown(task).length), 0)
  const [done, failed] = [widest(doneOf), widest(failedOf)]
  const user = Math.min(longestUser, widest(userOf))
  return tasks.map((task) => {
    const { mark, style } = taskGlyphs[task.status]
    const front: Span[] = [
      { text: `${glyph(mark)} `, style },
      ...(isNarrow ? [] : [{ text: fit(task.status, 10), style }]),
      { text: fitRight(doneOf(task), done) },
      { text: ` ${fitRight(failedOf(task), failed)}`, style: { fg: 'red' } },
      { text: `${fitRight(shortTime(now - Date.parse(task.createdAt)), 7)} ago  `, style: { dim: true } },
    ]
    const room = width - widthOfSpans(front)
    const back = [`  ${task.taskId.slice(-shortId)}`, `  ${fit(userOf(task), user)}`]
    while (back.length > 0 && room - widthOf(back.join('')) < leastName) back.pop()
    return [
      ...front,
      { text: fit(nameOf(task), room - widthOf(back.join(''))) },
      { text: back.join(''), style: { dim: true } },
    ]
  })
}

export function taskText(task: TaskSummary): string {
  return [task.status, nameOf(task), userOf(task), task.taskId].join(' ')
}

const nameOf = (task: TaskSummary) =>
  sanitizeLine(task.scriptName ?? withOwnMark(task.firstLine ?? 'command'))
const userOf = ({ createdBy }: TaskSummary) => sanitizeLine(createdBy)

const doneOf = ({ counts, hostCount }: TaskSummary) => `${tallyOf(counts).done}/${hostCount}`

function failedOf(task: TaskSummary): string {
  const { failed } = tallyOf(task.counts)
  return failed === 0 ? '' : `${failed} failed`
}

export function aboutHost(host: Host, now: number): Span[][] {
  const { ip, systemInfo, agent, tags } = host
  const system =
    systemInfo === null
      ? 'system unknown'
      : `${systemInfo.os}, ${systemInfo.arch}, ${systemInfo.cpuCores} cores`
  const version = agent === null ? 'no agent' : `agent ${agent.agentVersion}`
  const lines = [
    `  ${sanitizeLine(standingOf(host, reasonNow(host, now)))}`,
    `  ${ip}  ${sanitizeLine(system)}  ${sanitizeLine(version)}`,
    ...(Object.keys(tags).length === 0 ? [] : [`  ${sanitizeLine(showTags(tags))}`]),
  ]
  const state = shownStatus(host)
  const alarm = state === 'ONLINE' ? {} : { style: { ...statusGlyphs[state].style, bold: true } }
  return [...lines.map((text, at): Span[] => [{ text, ...(at === 0 ? alarm : {}) }]), []]
}

export function runQuestion(
  command: string,
  hosts: readonly Pick<Host, 'hostname' | 'status' | 'agent'>[],
  server: string,
  cols: number,
): Span[][] {
  const wrapped = (text: string) =>
    partsOf(sanitizeLine(text), Math.max(1, Math.min(widestQuestion, cols - 6)))
  const lines = (text: string, style: Span['style'] = {}) =>
    wrapped(text).map((part): Span[] => [{ text: part, style }])
  const away = hosts.filter((host) => !canBeReached(host)).length
  const names = shortened(foldNodeset(hosts.map(({ hostname }) => hostname)), longestNames, '...')
  return [
    ...lines(`Run on ${counted(hosts.length, 'host')} of ${server}?`, { bold: true }),
    [],
    ...lines(command, { fg: 'cyan' }),
    [],
    ...lines(names),
    ...(away === 0 ? [] : lines(`${away} of them can't be reached now`, { fg: 'red' })),
    [],
    [{ text: 'y', style: { bold: true } }, { text: '  run it; any other key cancels' }],
  ]
}

export const fleetHelp: Keys = [
  ['Up Down j k PgUp PgDn g G', 'move in the active pane'],
  ['Tab', 'switch panes'],
  ['Enter', 'open the chosen task, or the newest of a host'],
  ['f', 'filter hosts, or tasks on the right'],
  ['e E', 'next, previous host that is not ONLINE'],
  ['x', 'run on the chosen host, or on all shown'],
  ['d', 'diagnose the chosen host, or the fleet'],
  ['t', 'a terminal on the chosen host'],
  ['Esc', 'show all hosts, all tasks'],
  ['Ctrl-L Ctrl-Z', 'redraw; suspend'],
  ['q Ctrl-C', 'quit'],
]

/** Most useful first: the rest is shown if there is room. */
export const fleetKeys: Keys = [
  ['q', 'quit'],
  ['?', 'help'],
  ['Enter', 'open'],
  ['x', 'run'],
  ['d', 'doctor'],
  ['t', 'terminal'],
  ['f', 'filter'],
  ['Tab', 'switch'],
  ['e', 'next not ONLINE'],
]
