import type { Host } from '../../../core/protocol/http/hosts.ts'
import type { TaskSummary } from '../../../core/protocol/http/tasks.ts'
import { hostState } from '../../hosts/state.ts'
import { counted } from '../../text/counted.ts'
import { sanitizeLine } from '../../text/sanitize.ts'
import { widthOf } from '../../text/width.ts'
import type { FleetState } from '../fleet-state.ts'
import type { Frame, Key, Mouse, Row, Size, Span } from '../screen/screen.ts'
import { fit } from './fit.ts'
import { aboutHost, fleetProgress, fleetTitle, taskRows, taskText } from './fleet-rows.ts'
import { fleetHelp, fleetKeys } from './help.ts'
import { allHosts, HostPane } from './host-pane.ts'
import { fleetRow } from './host-row.ts'
import { assemble, type Focus, footOf, type Panes, panesOf } from './layout.ts'
import { List, stepOf } from './list.ts'
import { helpLines, overlay } from './overlay.ts'
import { Prompt } from './prompt.ts'
import { Report } from './report.ts'
import { runQuestion } from './run-question.ts'

export interface FleetActions {
  openTask(taskId: string, hostId: number | null): void
  /** Reads the tasks of this host; null: of all. */
  tasksOf(hostId: number | null): void
  terminal(hostId: number): void
  /** Runs this on these hosts, which were agreed to. */
  run(command: string, hostIds: readonly number[]): void
  /** Examines the fleet; `found` takes the lines, of so many columns at most. */
  examine(columns: number): void
}

const wheelStep = 3

export class FleetView {
  readonly #state: FleetState
  readonly #actions: FleetActions
  readonly #server: string
  readonly #hosts = new HostPane()
  readonly #tasks = new List<string>()
  #focus: Focus = 'left'
  #prompt: { readonly line: Prompt; readonly of: 'hosts' | 'tasks' | 'run' } | null = null
  #question: { readonly lines: readonly Span[][]; readonly yes: () => void } | null = null
  #report: Report | null = null
  #taskFilter = ''
  #cols = 80
  #note: Span | null = null
  lost: string | null = null
  #shown = ''
  #selected: number = allHosts
  #panes: Panes | null = null
  /** A task of the chosen host is to be opened as soon as they have come. */
  #isToOpen = false
  /** In which row of its pane the first task stands. */
  #tasksFrom = 0

  constructor(state: FleetState, server: string, actions: FleetActions) {
    this.#state = state
    this.#server = server
    this.#actions = actions
  }

  readonly isCopying = false

  get isReady(): boolean {
    return this.#state.isLoaded && this.#state.areTasksRead
  }

  get isTyping(): boolean {
    return this.#prompt !== null || this.#question !== null || this.#report !== null
  }

  show(lines: readonly Span[][]): void {
    this.#note = null
    this.#report = new Report(lines)
  }

  readonly say = (text: string, isBad = false): void => {
    this.#note = { text: sanitizeLine(text), style: isBad ? { fg: 'red', bold: true } : { bold: true } }
  }

  key(key: Key): void {
    this.#note = null
    this.#isToOpen = false
    const { name } = key
    if (this.#prompt !== null) this.#typed(key, this.#prompt)
    else if (this.#question !== null) this.#answered(name, this.#question)
    else if (this.#report !== null) this.#report = this.#report.key(name) ? this.#report : null
    else if (name === '?') this.show(helpLines('Keys of the fleet', fleetHelp))
    else if (name === 'tab' || name === 'S-tab') this.#focus = this.#focus === 'left' ? 'right' : 'left'
    else if (name === 'enter') this.#open()
    else if (name === 'escape') this.#escape()
    else if (name === 'f' || name === '/') this.#filter()
    else if (name === 'x') this.#run()
    else if (name === 'd') this.#actions.examine(this.#cols - 6)
    else if (name === 'e' || name === 'E') this.#jump(name === 'e' ? 'down' : 'up')
    else if (name === 't') this.#terminal()
    else this.#moved(name)
    // At once, and not with the next frame: the next key may be for what is chosen now.
    this.#select()
  }

  mouse({ action, x, y }: Mouse): void {
    const panes = this.#panes
    if (panes === null || this.#prompt !== null || this.#question !== null) return
    const isLeft = x < panes.left
    const list: List<string> | List<number> = isLeft ? this.#hosts.list : this.#tasks
    if (action !== 'press') {
      list.move(action === 'wheelup' ? -wheelStep : wheelStep)
      return
    }
    this.#report = null
    this.#focus = isLeft ? 'left' : 'right'
    const at = y - panes.top
    if (at < 0) return
    if (isLeft) this.#hosts.list.choose(this.#hosts.list.shown(panes.height)[at] ?? allHosts)
    else {
      const taskId = this.#tasks.shown(panes.height - this.#tasksFrom)[at - this.#tasksFrom]
      if (taskId === undefined) return
      if (taskId === this.#tasks.chosen) this.#actions.openTask(taskId, this.#hostId())
      else this.#tasks.choose(taskId)
    }
  }

  frame(size: Size, now: number): Frame {
    this.#refresh(now)
    const leftTitle = this.#leftTitle()
    const wanted = Math.max(this.#hosts.wanted, ...leftTitle.map(({ text }) => widthOf(text)))
    const panes = panesOf(size, wanted, this.#focus)
    this.#panes = panes
    this.#cols = size.cols
    const frame = assemble(size, panes, {
      title: fleetTitle(this.#state, this.#server, size.cols),
      progress: fleetProgress(this.#state, size.cols),
      leftTitle,
      rightTitle: this.#rightTitle(),
      rightState: this.#state.isLoaded ? [] : [{ text: ' reading... ' }],
      left: this.#hosts.rows(panes.left, panes.height, this.#focus === 'left'),
      right: this.#right(panes, now),
      foot: this.#foot(size.cols),
      focus: this.#focus,
      prompt: this.#prompt?.line ?? null,
    })
    if (this.#question !== null) return overlay(frame, size, this.#question.lines)
    return this.#report?.over(frame, size) ?? frame
  }

  #typed(key: Key, { line, of }: { line: Prompt; of: 'hosts' | 'tasks' | 'run' }): void {
    const typed = line.key(key)
    const text = typed === 'left' ? '' : line.text
    if (of === 'hosts') this.#hosts.filter = text
    else if (of === 'tasks') this.#taskFilter = text
    if (typed === 'typed') return
    this.#prompt = null
    if (of === 'run' && text.trim() !== '') this.#ask(text)
  }

  #filter(): void {
    this.#prompt =
      this.#focus === 'left'
        ? { line: new Prompt('hosts with: ', this.#hosts.filter), of: 'hosts' }
        : { line: new Prompt('tasks with: ', this.#taskFilter), of: 'tasks' }
  }

  #targets(): Host[] {
    const { chosen, ids } = this.#hosts.list
    const wanted = chosen === null || chosen === allHosts ? ids : [chosen]
    return wanted.flatMap((id) => this.#state.hosts.get(id) ?? [])
  }

  #run(): void {
    const { length } = this.#targets()
    if (length === 0) this.say('no host is shown')
    else this.#prompt = { line: new Prompt(`run on ${counted(length, 'host')}: `), of: 'run' }
  }

  /** What was agreed to is what runs: hosts that join meanwhile are no part of it. */
  #ask(command: string): void {
    const hosts = this.#targets()
    this.#question = {
      lines: runQuestion(command, hosts, this.#server, this.#cols),
      yes: () =>
        this.#actions.run(
          command,
          hosts.map(({ id }) => id),
        ),
    }
  }

  #answered(name: string, { yes }: { yes: () => void }): void {
    this.#question = null
    if (name === 'y' || name === 'Y') yes()
    else this.say('nothing was started')
  }

  #open(): void {
    const taskId = this.#focus === 'right' ? this.#tasks.chosen : this.#state.tasks[0]?.taskId
    // They are another's until those of the chosen host have come.
    this.#isToOpen = this.#state.hostId !== this.#hostId()
    if (this.#isToOpen) return
    if (this.#focus === 'left' && this.#selected === allHosts) this.#focus = 'right'
    else if (typeof taskId === 'string') this.#actions.openTask(taskId, this.#hostId())
    else this.say('no task to open')
  }

  #escape(): void {
    if (this.#focus === 'right' && this.#taskFilter !== '') this.#taskFilter = ''
    else if (this.#hosts.filter !== '') this.#hosts.filter = ''
    else if (this.#taskFilter !== '') this.#taskFilter = ''
    else if (this.#focus === 'right') this.#focus = 'left'
    else this.#hosts.list.choose(allHosts)
  }

  #jump(direction: 'up' | 'down'): void {
    const isOff = ({ id }: { id: number }) => {
      const host = this.#state.hosts.get(id)
      return host === undefined || hostState(host) !== 'ONLINE'
    }
    if (!this.#hosts.jump(direction, isOff)) this.say('every host is ONLINE and reachable')
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
    const shown = `${this.#state.version} ${Math.floor(now / 1000)}`
    if (shown !== this.#shown) {
      this.#shown = shown
      this.#hosts.set([...this.#state.hosts.values()].map((host) => fleetRow(host, now)))
    }
    this.#select()
    this.#tasks.set(this.#shownTasks().map(({ taskId }) => taskId))
    if (this.#isToOpen && this.#state.hostId === this.#hostId()) {
      this.#isToOpen = false
      this.#open()
    }
  }

  #shownTasks(): readonly TaskSummary[] {
    const sought = this.#taskFilter.toLowerCase()
    return sought === ''
      ? this.#state.tasks
      : this.#state.tasks.filter((task) => taskText(task).toLowerCase().includes(sought))
  }

  #select(): void {
    const chosen = this.#hosts.list.chosen ?? allHosts
    if (chosen === this.#selected) return
    this.#selected = chosen
    this.#actions.tasksOf(chosen === allHosts ? null : chosen)
  }

  #hostId(): number | null {
    return this.#selected === allHosts ? null : this.#selected
  }

  #selectedName(): string {
    return this.#hosts.row(this.#selected)?.name ?? ''
  }

  #leftTitle(): Span[] {
    const { filter, count, shownCount } = this.#hosts
    const which = filter === '' ? `${count}` : `${shownCount} of ${count} with ${sanitizeLine(filter)}`
    return [{ text: ` Hosts ${which} ` }]
  }

  #rightTitle(): Span[] {
    const whose = this.#selected === allHosts ? '' : `of ${this.#selectedName()} `
    const { length } = this.#tasks.ids
    const which =
      this.#taskFilter === ''
        ? ''
        : `${length} of ${this.#state.tasks.length} with ${sanitizeLine(this.#taskFilter)} `
    return [{ text: ` Tasks ${whose}${which}` }]
  }

  #right({ right, height }: Panes, now: number): Span[][] {
    if (right <= 0) return []
    const host = this.#state.hosts.get(this.#selected)
    const about = host === undefined ? [] : aboutHost(host, now)
    this.#tasksFrom = about.length
    const tasks = new Map(this.#state.tasks.map((task) => [task.taskId, task]))
    const shown = this.#tasks.shown(Math.max(1, height - about.length)).flatMap((id) => tasks.get(id) ?? [])
    const rows = taskRows(shown, right, now).map((spans, at): Span[] => {
      if (shown[at]?.taskId !== this.#tasks.chosen) return spans
      const text = fit(spans.map((span) => span.text).join(''), right)
      const style = this.#focus === 'right' ? { inverse: true, bold: true } : { inverse: true, dim: true }
      return [{ text, style }]
    })
    if (rows.length > 0 || !this.#state.isLoaded) return [...about, ...rows]
    const hint = this.#emptyHint()
    return [...about, [{ text: `  ${hint}`, style: { dim: true } }]]
  }

  #emptyHint(): string {
    if (this.#state.hosts.size === 0) return 'no hosts yet: rsm hosts join'
    return this.#taskFilter === '' ? 'no tasks yet: x runs one' : 'no such tasks'
  }

  #foot(cols: number): Row {
    if (this.#note !== null) return footOf(cols, [], this.#note)
    if (this.lost !== null) return footOf(cols, [], { text: this.lost, style: { fg: 'yellow', bold: true } })
    return footOf(cols, fleetKeys, null)
  }
}
