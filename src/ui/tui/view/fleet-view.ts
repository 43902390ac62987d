import type { Host } from '../../../core/protocol/http/hosts.ts'
import type { TaskSummary } from '../../../core/protocol/http/tasks.ts'
import { showTags } from '../../hosts/view.ts'
import { sanitizeLine } from '../../text/sanitize.ts'
import type { FleetState } from '../fleet-state.ts'
import type { Frame, Key, Mouse, Row, Size, Span, Style } from '../screen/screen.ts'
import { fit, fitRight, spread } from './fit.ts'
import { type Glyph, glyph } from './glyphs.ts'
import { allHosts, HostPane } from './host-pane.ts'
import { fleetRow, isFailure, shortTime } from './host-row.ts'
import { assemble, type Focus, footOf, type Panes, panesOf, progressBar } from './layout.ts'
import { List, stepOf } from './list.ts'
import { helpLines, overlay } from './overlay.ts'
import { Prompt } from './prompt.ts'

export interface FleetActions {
  openTask(taskId: string): void
  /** Reads the tasks of this host; null: of all. */
  tasksOf(hostId: number | null): void
  terminal(hostId: number): void
}

type Keys = readonly (readonly [key: string, does: string])[]

const help: Keys = [
  ['Up Down j k PgUp PgDn g G', 'move in the pane in use'],
  ['Tab', 'the other pane'],
  ['Enter', 'open the chosen task; of a host, its newest one'],
  ['f', 'hosts with this text in name or state'],
  ['e E', 'next, previous host that is not ONLINE'],
  ['t', 'a terminal on the chosen host'],
  ['Esc', 'all hosts again'],
  ['Ctrl-L Ctrl-Z', 'draw anew; suspend'],
  ['q Ctrl-C', 'leave'],
]
const keys: Keys = [
  ['q', 'quit'],
  ['?', 'help'],
  ['Enter', 'open task'],
  ['Tab', 'hosts/tasks'],
  ['t', 'terminal'],
  ['f', 'filter'],
  ['e', 'next not ONLINE'],
]

const looks: Readonly<Record<TaskSummary['status'], { mark: Glyph; style: Style }>> = {
  RUNNING: { mark: 'running', style: { fg: 'cyan' } },
  SUCCESS: { mark: 'success', style: { fg: 'green' } },
  FAILED: { mark: 'failed', style: { fg: 'red' } },
  CANCELLED: { mark: 'stopped', style: { fg: 'yellow' } },
}
const wheelStep = 3

function doneOf({ counts, hostCount }: TaskSummary): string {
  return `${hostCount - counts.PENDING - counts.RUNNING}/${hostCount}`
}

function failuresOf({ counts }: TaskSummary): number {
  const statuses = ['FAILED', 'TIMEOUT', 'LOST', 'UNREACHABLE'] as const
  return statuses.filter(isFailure).reduce((sum, status) => sum + counts[status], 0)
}

/** All hosts on the screen, and the tasks to choose from. */
export class FleetView {
  readonly #state: FleetState
  readonly #actions: FleetActions
  readonly #server: string
  readonly #hosts = new HostPane()
  readonly #tasks = new List<string>()
  #focus: Focus = 'left'
  #prompt: Prompt | null = null
  #isHelping = false
  #note: Span | null = null
  lost: string | null = null
  #shown = ''
  #selected: number = allHosts
  #panes: Panes | null = null
  /** In which row of its pane the first task stands. */
  #tasksFrom = 0

  constructor(state: FleetState, server: string, actions: FleetActions) {
    this.#state = state
    this.#server = server
    this.#actions = actions
  }

  readonly isCopying = false

  get isTyping(): boolean {
    return this.#prompt !== null
  }

  readonly say = (text: string, isBad = false): void => {
    this.#note = { text: sanitizeLine(text), style: isBad ? { fg: 'red', bold: true } : { bold: true } }
  }

  key(key: Key): void {
    this.#note = null
    const { name } = key
    if (this.#prompt !== null) this.#typed(key, this.#prompt)
    else if (this.#isHelping) this.#isHelping = false
    else if (name === '?') this.#isHelping = true
    else if (name === 'tab' || name === 'S-tab') this.#focus = this.#focus === 'left' ? 'right' : 'left'
    else if (name === 'enter') this.#open()
    else if (name === 'escape') this.#escape()
    else if (name === 'f' || name === '/') this.#prompt = new Prompt('hosts with: ', this.#hosts.filter)
    else if (name === 'e' || name === 'E') this.#jump(name === 'e' ? 'down' : 'up')
    else if (name === 't') this.#terminal()
    else this.#moved(name)
  }

  mouse({ action, x, y }: Mouse): void {
    const panes = this.#panes
    if (panes === null || this.#prompt !== null) return
    const isLeft = x < panes.left
    const list: List<string> | List<number> = isLeft ? this.#hosts.list : this.#tasks
    if (action !== 'press') {
      list.move(action === 'wheelup' ? -wheelStep : wheelStep)
      return
    }
    this.#isHelping = false
    this.#focus = isLeft ? 'left' : 'right'
    const at = y - panes.top
    if (at < 0) return
    if (isLeft) this.#hosts.list.choose(this.#hosts.list.shown(panes.height)[at] ?? allHosts)
    else {
      const taskId = this.#tasks.shown(panes.height - this.#tasksFrom)[at - this.#tasksFrom]
      if (taskId === undefined) return
      if (taskId === this.#tasks.chosen) this.#actions.openTask(taskId)
      else this.#tasks.choose(taskId)
    }
  }

  frame(size: Size, now: number): Frame {
    this.#refresh(now)
    const panes = panesOf(size, this.#hosts.wanted, this.#focus)
    this.#panes = panes
    const frame = assemble(size, panes, {
      title: this.#title(size.cols),
      progress: this.#progress(size.cols),
      leftTitle: this.#leftTitle(),
      rightTitle: [{ text: ` Tasks ${this.#selected === allHosts ? '' : `of ${this.#selectedName()} `}` }],
      rightState: this.#state.isLoaded ? [] : [{ text: ' reading... ' }],
      left: this.#hosts.rows(panes.left, panes.height, this.#focus === 'left'),
      right: this.#right(panes, now),
      foot: this.#foot(size.cols),
      focus: this.#focus,
      prompt: this.#prompt,
    })
    return this.#isHelping ? overlay(frame, size, helpLines('Keys of the fleet', help)) : frame
  }

  #typed(key: Key, prompt: Prompt): void {
    const typed = prompt.key(key)
    this.#hosts.filter = typed === 'left' ? '' : prompt.text
    if (typed !== 'typed') this.#prompt = null
  }

  #open(): void {
    const taskId = this.#focus === 'right' ? this.#tasks.chosen : this.#state.tasks[0]?.taskId
    if (this.#focus === 'left' && this.#selected === allHosts) this.#focus = 'right'
    else if (typeof taskId === 'string') this.#actions.openTask(taskId)
    else this.say('no task to open')
  }

  #escape(): void {
    if (this.#hosts.filter !== '') this.#hosts.filter = ''
    else if (this.#focus === 'right') this.#focus = 'left'
    else this.#hosts.list.choose(allHosts)
  }

  #jump(direction: 'up' | 'down'): void {
    const isOff = ({ id }: { id: number }) => this.#state.hosts.get(id)?.status !== 'ONLINE'
    if (!this.#hosts.jump(direction, isOff)) this.say('every host is ONLINE')
  }

  #terminal(): void {
    const id = this.#hosts.list.chosen
    if (id === null || id === allHosts) this.say('choose a host first: t opens a terminal on it')
    else this.#actions.terminal(id)
  }

  #moved(name: string): void {
    const step = stepOf(name, this.#panes?.height ?? 10)
    if (step === undefined) return
    if (this.#focus === 'left') this.#hosts.list.move(step)
    else this.#tasks.move(step)
  }

  #refresh(now: number): void {
    const shown = `${this.#state.version} ${Math.floor(now / 1000)} ${this.#hosts.filter}`
    if (shown !== this.#shown) {
      this.#shown = shown
      this.#hosts.set([...this.#state.hosts.values()].map((host) => fleetRow(host, now)))
    }
    const chosen = this.#hosts.list.chosen ?? allHosts
    if (chosen !== this.#selected) {
      this.#selected = chosen
      this.#actions.tasksOf(chosen === allHosts ? null : chosen)
    }
    this.#tasks.set(this.#state.tasks.map(({ taskId }) => taskId))
  }

  #selectedName(): string {
    return this.#hosts.row(this.#selected)?.name ?? ''
  }

  #count(status: Host['status']): number {
    let count = 0
    for (const host of this.#state.hosts.values()) if (host.status === status) count++
    return count
  }

  #title(cols: number): Row {
    const running = this.#state.tasks.filter(({ status }) => status === 'RUNNING').length
    const back = `  ${running} ${running === 1 ? 'task' : 'tasks'} running `
    return spread(
      cols,
      [{ text: ' rsm', style: { bold: true } }, { text: `  ${sanitizeLine(this.#server)}` }],
      [{ text: back, style: running > 0 ? { fg: 'cyan', bold: true } : { dim: true } }],
    )
  }

  #progress(cols: number): Row {
    const all = this.#state.hosts.size
    const shares = [
      { status: 'OFFLINE', style: { fg: 'red' } },
      { status: 'WARNING', style: { fg: 'yellow' } },
      { status: 'ONLINE', style: { fg: 'green' } },
    ] as const
    const counts = shares.flatMap(({ status, style }): Span[] => {
      const count = this.#count(status)
      return count === 0 ? [] : [{ text: `  ${count} ${status}`, style }]
    })
    const told: Span[] = [
      { text: ` ${all} ${all === 1 ? 'host' : 'hosts'}`, style: { bold: true } },
      ...counts,
      { text: ' ' },
    ]
    const room = Math.max(0, cols - told.reduce((sum, { text }) => sum + text.length, 0) - 1)
    const parts = shares.map(({ status, style }) => ({ count: this.#count(status), span: { style } }))
    return spread(cols, [{ text: ' ' }, ...(room < 10 ? [] : progressBar(room, parts, all))], told)
  }

  #leftTitle(): Span[] {
    const { filter, count, shownCount } = this.#hosts
    const which = filter === '' ? `${count}` : `${shownCount} of ${count} with ${sanitizeLine(filter)}`
    return [{ text: ` Hosts ${which} ` }]
  }

  #right({ right, height }: Panes, now: number): Span[][] {
    if (right <= 0) return []
    const host = this.#state.hosts.get(this.#selected)
    const about = host === undefined ? [] : aboutHost(host)
    this.#tasksFrom = about.length
    const tasks = new Map(this.#state.tasks.map((task) => [task.taskId, task]))
    const rows = this.#tasks.shown(Math.max(1, height - about.length)).flatMap((id) => {
      const task = tasks.get(id)
      return task === undefined ? [] : [this.#taskRow(task, right, now)]
    })
    if (rows.length > 0 || !this.#state.isLoaded) return [...about, ...rows]
    const hint = this.#state.hosts.size === 0 ? 'no hosts yet: rsm hosts join' : 'no tasks yet: rsm exec'
    return [...about, [{ text: `  ${hint}`, style: { dim: true } }]]
  }

  #taskRow(task: TaskSummary, width: number, now: number): Span[] {
    const { mark, style } = looks[task.status]
    const failures = failuresOf(task)
    const spans: Span[] = [
      { text: `${glyph(mark)} `, style },
      { text: fit(task.status, 10), style },
      { text: fitRight(doneOf(task), 10) },
      { text: fitRight(failures === 0 ? '' : `${failures} failed`, 13), style: { fg: 'red' } },
      { text: fitRight(shortTime(now - Date.parse(task.createdAt)), 7), style: { dim: true } },
      { text: ' ago  ', style: { dim: true } },
      { text: sanitizeLine(task.scriptName ?? 'command') },
      { text: `  ${sanitizeLine(task.createdBy)}  ${task.taskId}`, style: { dim: true } },
    ]
    if (task.taskId !== this.#tasks.chosen) return spans
    const text = fit(spans.map((span) => span.text).join(''), width)
    return [
      { text, style: this.#focus === 'right' ? { inverse: true, bold: true } : { inverse: true, dim: true } },
    ]
  }

  #foot(cols: number): Row {
    if (this.#note !== null) return footOf(cols, [], this.#note)
    if (this.lost !== null) return footOf(cols, [], { text: this.lost, style: { fg: 'yellow', bold: true } })
    return footOf(cols, keys, null)
  }
}

function aboutHost({ status, statusReason, ip, systemInfo, agent, tags }: Host): Span[][] {
  const reason = statusReason === null ? '' : `: ${sanitizeLine(statusReason)}`
  const system =
    systemInfo === null
      ? 'system not known'
      : `${systemInfo.os}, ${systemInfo.arch}, ${systemInfo.cpuCores} cores`
  const version = agent === null ? 'no agent' : `agent ${agent.agentVersion}`
  const lines = [
    `  ${status}${reason}`,
    `  ${ip}  ${sanitizeLine(system)}  ${sanitizeLine(version)}`,
    ...(Object.keys(tags).length === 0 ? [] : [`  ${sanitizeLine(showTags(tags))}`]),
  ]
  const isBad = status !== 'ONLINE'
  return [
    ...lines.map((text, at): Span[] => [
      {
        text,
        ...(at === 0 && isBad
          ? { style: { fg: status === 'OFFLINE' ? 'red' : 'yellow', bold: true } as const }
          : {}),
      },
    ]),
    [],
  ]
}
