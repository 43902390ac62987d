import { shownStatus } from '../../../core/hosts/host-status.ts'
import type { Host } from '../../../core/protocol/http/hosts.ts'
import type { TaskSummary } from '../../../core/protocol/http/tasks.ts'
import { counted } from '../../text/amounts.ts'
import { sanitizeLine } from '../../text/sanitize.ts'
import type { FleetState } from '../fleet-state.ts'
import type { Frame, Key, Size, Span } from '../screen/screen.ts'
import { chosenRow, type Focus, type Panes, Prompt } from './drawing.ts'
import {
  aboutHost,
  fleetHelp,
  fleetKeys,
  fleetProgress,
  fleetTitle,
  runQuestion,
  taskRows,
  taskText,
} from './fleet-rows.ts'
import { allHosts, fleetRow } from './host-pane.ts'
import { List } from './list.ts'
import { helpLines, Report } from './overlay.ts'
import { TwoPanes } from './two-panes.ts'

export interface FleetActions {
  openTask(taskId: string, hostId: number | null): void
  /** Reads the tasks of this host; null for all. */
  tasksOf(hostId: number | null): void
  terminal(hostId: number): void
  /** Runs a confirmed command on these hosts. */
  run(command: string, hostIds: readonly number[]): void
  /** Shows findings about this host, or about the fleet for null, in lines of at most `columns`. */
  examine(columns: number, hostId: number | null): void
}

export class FleetView extends TwoPanes<'hosts' | 'tasks' | 'run'> {
  readonly #state: FleetState
  readonly #actions: FleetActions
  readonly #server: string
  readonly #tasks = new List<string>()
  #taskFilter = ''
  #cols = 80
  #shown = ''
  #selected: number = allHosts
  /** Open the newest task of the chosen host once its tasks are loaded. */
  #isToOpen = false
  /** Row of the first task in its pane. */
  #tasksFrom = 0

  constructor(state: FleetState, server: string, actions: FleetActions) {
    super(actions)
    this.#state = state
    this.#server = server
    this.#actions = actions
  }

  readonly isCopying = false

  get isReady(): boolean {
    return this.#state.isLoaded && this.#state.areTasksRead
  }

  show(lines: readonly Span[][]): void {
    this.note = null
    this.report = new Report(lines)
  }

  key(key: Key): void {
    this.note = null
    this.#isToOpen = false
    const { name } = key
    if (this.answer(key, 'nothing was started')) {
      // The key was for the prompt or the question.
    } else if (this.report !== null) this.report = this.report.key(name) ? this.report : null
    else if (name === '?') this.show(helpLines('Keys of the fleet', fleetHelp))
    else if (name === 'tab' || name === 'S-tab') this.turn()
    else if (name === 'enter') this.#open()
    else if (name === 'escape') this.#escape()
    else if (name === 'f' || name === '/') this.#filter()
    else if (name === 'x') this.#run()
    else if (name === 'd') this.#actions.examine(this.#cols - 6, this.#hostId())
    else if (name === 'e' || name === 'E') this.#jump(name === 'e' ? 'down' : 'up')
    else if (name === 't') this.openTerminal()
    else this.#moved(name)
    // At once instead of with the next frame, because the next key may act on the choice.
    this.#select()
  }

  protected scroll(by: number): void {
    this.#tasks.move(by)
  }

  protected press(pane: Focus, row: number, { height }: Panes): void {
    if (pane === 'left') {
      this.hosts.list.choose(this.hosts.list.shown(height)[row] ?? allHosts)
      return
    }
    const taskId = this.#tasks.shown(height - this.#tasksFrom)[row - this.#tasksFrom]
    if (taskId === undefined) return
    if (taskId === this.#tasks.chosen) this.#actions.openTask(taskId, this.#hostId())
    else this.#tasks.choose(taskId)
  }

  frame(size: Size, now: number): Frame {
    this.#refresh(now)
    this.#cols = size.cols
    return this.draw(size, (panes) => ({
      title: fleetTitle(this.#state, this.#server, size.cols),
      progress: fleetProgress(this.#state, size.cols),
      rightTitle: this.#rightTitle(),
      rightState: this.#state.isLoaded ? [] : [{ text: ' reading... ' }],
      right: this.#right(panes, now),
      foot: this.foot(size.cols, fleetKeys),
    }))
  }

  protected typed(of: 'hosts' | 'tasks' | 'run', text: string, how: 'typed' | 'done' | 'left'): void {
    if (of === 'hosts') this.hosts.filter = text
    else if (of === 'tasks') this.#taskFilter = text
    else if (how !== 'typed' && text.trim() !== '') this.#ask(text)
  }

  #filter(): void {
    this.prompt =
      this.focus === 'left'
        ? { line: new Prompt('hosts with: ', this.hosts.filter), of: 'hosts' }
        : { line: new Prompt('tasks with: ', this.#taskFilter), of: 'tasks' }
  }

  #targets(): Host[] {
    const { chosen, ids } = this.hosts.list
    const wanted = chosen === null || chosen === allHosts ? ids : [chosen]
    return wanted.flatMap((id) => this.#state.hosts.get(id) ?? [])
  }

  #run(): void {
    const { length } = this.#targets()
    if (length === 0) this.say('no host is shown')
    else this.prompt = { line: new Prompt(`run on ${counted(length, 'host')}: `), of: 'run' }
  }

  /** Fixes the hosts when asking: hosts that join later are not included. */
  #ask(command: string): void {
    const hosts = this.#targets()
    this.question = {
      asked: runQuestion(command, hosts, this.#server, this.#cols),
      yes: () =>
        this.#actions.run(
          command,
          hosts.map(({ id }) => id),
        ),
    }
  }

  #open(): void {
    const taskId = this.focus === 'right' ? this.#tasks.chosen : this.#state.tasks[0]?.taskId
    // The shown tasks are another host's until those of the chosen one are loaded.
    this.#isToOpen = this.#state.hostId !== this.#hostId()
    if (this.#isToOpen) return
    if (this.focus === 'left' && this.#selected === allHosts) this.focus = 'right'
    else if (typeof taskId === 'string') this.#actions.openTask(taskId, this.#hostId())
    else this.say('no task to open')
  }

  #escape(): void {
    if (this.focus === 'right' && this.#taskFilter !== '') this.#taskFilter = ''
    else if (this.hosts.filter !== '') this.hosts.filter = ''
    else if (this.#taskFilter !== '') this.#taskFilter = ''
    else if (this.focus === 'right') this.focus = 'left'
    else this.hosts.list.choose(allHosts)
  }

  #jump(direction: 'up' | 'down'): void {
    if (this.hosts.jump(direction, ({ state }) => state !== 'ONLINE')) return
    const shown = new Set(this.hosts.list.ids)
    const off = [...this.#state.hosts.values()].filter((host) => shownStatus(host) !== 'ONLINE')
    const hidden = off.filter(({ id }) => !shown.has(id)).length
    if (off.length === 0) this.say('every host is ONLINE')
    else if (hidden < off.length) this.say('every other host shown is ONLINE')
    else
      this.say(
        `every host shown is ONLINE; ${hidden} hidden by the filter ${hidden === 1 ? 'is' : 'are'} not: Esc`,
      )
  }

  #moved(name: string): void {
    const step = this.stepOf(name)
    if (step === undefined) return
    if (this.focus === 'left') this.hosts.list.move(step)
    else this.#tasks.move(step)
  }

  #refresh(now: number): void {
    const shown = `${this.#state.version} ${Math.floor(now / 1000)}`
    if (shown !== this.#shown) {
      this.#shown = shown
      this.hosts.set([...this.#state.hosts.values()].map((host) => fleetRow(host, now)))
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
    const chosen = this.hosts.list.chosen ?? allHosts
    if (chosen === this.#selected) return
    this.#selected = chosen
    this.#actions.tasksOf(chosen === allHosts ? null : chosen)
  }

  #hostId(): number | null {
    return this.#selected === allHosts ? null : this.#selected
  }

  #selectedName(): string {
    return this.hosts.row(this.#selected)?.name ?? ''
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
    const rows = taskRows(shown, right, now).map((spans, at): Span[] =>
      shown[at]?.taskId === this.#tasks.chosen ? chosenRow(spans, right, this.focus === 'right') : spans,
    )
    if (rows.length > 0 || !this.#state.isLoaded) return [...about, ...rows]
    const hint = this.#emptyHint()
    return [...about, [{ text: `  ${hint}`, style: { dim: true } }]]
  }

  #emptyHint(): string {
    if (this.#state.hosts.size === 0) return 'no hosts yet: rsm hosts join'
    return this.#taskFilter === '' ? 'no tasks yet: x runs one' : 'no such tasks'
  }
}
