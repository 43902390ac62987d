import { hostState } from '../../hosts/state.ts'
import { sanitizeLine } from '../../text/sanitize.ts'
import { widthOf } from '../../text/width.ts'
import type { FleetState } from '../fleet-state.ts'
import type { Frame, Key, Mouse, Row, Size, Span } from '../screen/screen.ts'
import { fit } from './fit.ts'
import { aboutHost, fleetProgress, fleetTitle, taskRows } from './fleet-rows.ts'
import { allHosts, HostPane } from './host-pane.ts'
import { fleetRow } from './host-row.ts'
import { assemble, type Focus, footOf, type Panes, panesOf } from './layout.ts'
import { List, stepOf } from './list.ts'
import { helpLines, overlay } from './overlay.ts'
import { Prompt } from './prompt.ts'

export interface FleetActions {
  openTask(taskId: string, hostId: number | null): void
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
  ['e E', 'next, previous host that is not ONLINE or not reachable'],
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

const wheelStep = 3

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
    return this.#prompt !== null
  }

  readonly say = (text: string, isBad = false): void => {
    this.#note = { text: sanitizeLine(text), style: isBad ? { fg: 'red', bold: true } : { bold: true } }
  }

  key(key: Key): void {
    this.#note = null
    this.#isToOpen = false
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
    // At once, and not with the next frame: the next key may be for what is chosen now.
    this.#select()
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
    const frame = assemble(size, panes, {
      title: fleetTitle(this.#state, this.#server, size.cols),
      progress: fleetProgress(this.#state, size.cols),
      leftTitle,
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
    // They are another's until those of the chosen host have come.
    this.#isToOpen = this.#state.hostId !== this.#hostId()
    if (this.#isToOpen) return
    if (this.#focus === 'left' && this.#selected === allHosts) this.#focus = 'right'
    else if (typeof taskId === 'string') this.#actions.openTask(taskId, this.#hostId())
    else this.say('no task to open')
  }

  #escape(): void {
    if (this.#hosts.filter !== '') this.#hosts.filter = ''
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
    this.#tasks.set(this.#state.tasks.map(({ taskId }) => taskId))
    if (this.#isToOpen && this.#state.hostId === this.#hostId()) {
      this.#isToOpen = false
      this.#open()
    }
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
    const hint = this.#state.hosts.size === 0 ? 'no hosts yet: rsm hosts join' : 'no tasks yet: rsm exec'
    return [...about, [{ text: `  ${hint}`, style: { dim: true } }]]
  }

  #foot(cols: number): Row {
    if (this.#note !== null) return footOf(cols, [], this.#note)
    if (this.lost !== null) return footOf(cols, [], { text: this.lost, style: { fg: 'yellow', bold: true } })
    return footOf(cols, keys, null)
  }
}
