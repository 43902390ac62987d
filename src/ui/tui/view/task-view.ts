import { isFailure } from '../../../core/task/task-state.ts'
import type { TaskState } from '../../task/task-state.ts'
import { sanitizeLine } from '../../text/sanitize.ts'
import { widthOf } from '../../text/width.ts'
import type { LogReader } from '../log/reader.ts'
import type { Frame, Key, Mouse, Row, Size, Span } from '../screen/screen.ts'
import { copyFrame } from './copy-frame.ts'
import { taskHelp, taskKeys } from './help.ts'
import { allHosts, HostPane } from './host-pane.ts'
import { resultRow } from './host-row.ts'
import { assemble, type Focus, footOf, type Panes, panesOf } from './layout.ts'
import { stepOf } from './list.ts'
import { LogPane } from './log-pane.ts'
import { logState, logTitle } from './log-title.ts'
import { noteRows } from './note-rows.ts'
import { helpLines, overlay } from './overlay.ts'
import { Prompt } from './prompt.ts'
import { taskProgress, taskTitle } from './task-head.ts'

/** What a person can ask of a task; each says by `say` what became of it. */
export interface TaskActions {
  cancel(): void
  retry(): void
  terminal(hostId: number): void
  back(): void
}

const wheelStep = 3

interface Question {
  readonly text: string
  readonly yes: () => void
}

export class TaskView {
  readonly #state: TaskState
  readonly #reader: LogReader
  readonly #actions: TaskActions
  readonly #log: LogPane
  readonly #hosts = new HostPane()
  #focus: Focus = 'left'
  #prompt: { readonly line: Prompt; readonly of: 'search' | 'filter' } | null = null
  #question: Question | null = null
  #isHelping = false
  #isCopying = false
  #isCopyShown = false
  #note: Span | null = null
  /** Why nothing new comes at present; null while it does. */
  lost: string | null = null
  #shown: { version: number; second: number } | null = null
  #selected: number | null = null
  #wanted: number | null = null
  #panes: Panes | null = null

  constructor(state: TaskState, reader: LogReader, actions: TaskActions) {
    this.#state = state
    this.#reader = reader
    this.#actions = actions
    this.#log = new LogPane(reader, this.say)
  }

  readonly say = (text: string, isBad = false): void => {
    this.#note = { text: sanitizeLine(text), style: isBad ? { fg: 'red', bold: true } : { bold: true } }
  }

  /** Chooses this host as soon as it is known. */
  choose(hostId: number): void {
    this.#wanted = hostId
  }

  /** While text is selected nothing may be drawn over it; until all of it has come there is nothing to select. */
  get isCopying(): boolean {
    return this.#isCopying && this.#isCopyShown
  }

  get isReady(): boolean {
    return this.#state.summary !== null
  }

  /** Whether every key, `q` too, is for what is being typed or answered. */
  get isTyping(): boolean {
    return this.#prompt !== null || this.#question !== null || this.#isCopying || this.#isHelping
  }

  key(key: Key): void {
    this.#note = null
    if (this.#prompt !== null) this.#typed(key, this.#prompt)
    else if (this.#question !== null) this.#answered(key, this.#question)
    else if (this.#isHelping) this.#isHelping = false
    else if (this.#isCopying) this.#copied(key)
    else if (!this.#command(key)) this.#moved(key)
    // At once, and not with the next frame: the next key may be for the log of what is chosen now.
    this.#select()
  }

  mouse({ action, x, y }: Mouse): void {
    const panes = this.#panes
    if (panes === null || this.#prompt !== null || this.#question !== null) return
    const isLeft = x < panes.left
    if (action !== 'press') {
      const by = action === 'wheelup' ? -wheelStep : wheelStep
      if (isLeft) this.#hosts.list.move(by)
      else this.#log.scroll(by)
      return
    }
    this.#isHelping = false
    this.#focus = isLeft ? 'left' : 'right'
    const id = isLeft ? this.#hosts.list.shown(panes.height)[y - panes.top] : undefined
    if (id !== undefined && y >= panes.top) this.#hosts.list.choose(id)
  }

  frame(size: Size, now: number): Frame {
    this.#refresh(now)
    this.#select()
    if (this.#isCopying) {
      if (this.#reader.isLoaded && !this.#isCopyShown) this.#log.hold()
      const frame = copyFrame(this.#log, size)
      this.#isCopyShown ||= this.#log.isFilled
      return frame
    }
    const leftTitle = this.#leftTitle()
    const wanted = Math.max(this.#hosts.wanted, ...leftTitle.map(({ text }) => widthOf(text)))
    const panes = panesOf(size, wanted, this.#focus)
    this.#panes = panes
    // First: what the title says of the log comes of what is shown of it.
    const right = this.#right(panes)
    const frame = assemble(size, panes, {
      title: taskTitle(this.#state, size.cols, now),
      progress: taskProgress(this.#state, size.cols),
      leftTitle,
      rightTitle: logTitle(this.#log, this.#hosts.row(this.#selected ?? allHosts)),
      rightState: logState(this.#log, this.#reader, this.#state.isRunning),
      left: this.#hosts.rows(panes.left, panes.height, this.#focus === 'left'),
      right,
      foot: this.#foot(size.cols),
      focus: this.#focus,
      prompt: this.#prompt?.line ?? null,
    })
    return this.#isHelping ? overlay(frame, size, helpLines('Keys of a task', taskHelp)) : frame
  }

  /** True of a key that does something else than to move. */
  #command(key: Key): boolean {
    const { name } = key
    const commands: Readonly<Record<string, () => void>> = {
      tab: () => this.#turn(),
      'S-tab': () => this.#turn(),
      enter: () => this.#turn(),
      escape: () => this.#escape(),
      '/': () => this.#ask('search', '/'),
      f: () => this.#ask('filter', 'hosts with: '),
      n: () => void this.#log.searchNext('down'),
      N: () => void this.#log.searchNext('up'),
      e: () => this.#nextError('down'),
      E: () => this.#nextError('up'),
      s: () => this.#log.cycleStream(),
      w: () => this.#log.toggleWrap(),
      b: () => this.#fold(),
      y: () => this.#copy(),
      F: () => this.#log.follow(),
      c: () => this.#cancel(),
      r: () => this.#retry(),
      t: () => this.#terminal(),
      '?': () => {
        this.#isHelping = true
      },
    }
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined
    command?.()
    return command !== undefined
  }

  #moved(key: Key): void {
    if (this.#focus === 'right') this.#log.key(key)
    else {
      const step = stepOf(key.name, this.#panes?.height ?? 10)
      if (step !== undefined) this.#hosts.list.move(step)
    }
  }

  #turn(): void {
    this.#focus = this.#focus === 'left' ? 'right' : 'left'
  }

  #escape(): void {
    if (this.#log.clearSearch()) return
    if (this.#hosts.filter !== '') this.#hosts.filter = ''
    else if (this.#focus === 'right') this.#focus = 'left'
    else this.#actions.back()
  }

  #ask(of: 'search' | 'filter', label: string): void {
    this.#prompt = { line: new Prompt(label, of === 'filter' ? this.#hosts.filter : ''), of }
  }

  #typed(key: Key, { line, of }: { line: Prompt; of: 'search' | 'filter' }): void {
    const typed = line.key(key)
    if (of === 'filter') this.#hosts.filter = typed === 'left' ? '' : line.text
    if (typed === 'typed') return
    this.#prompt = null
    if (of === 'search' && typed === 'done') void this.#log.search(line.text)
  }

  #answered({ name }: Key, { yes }: Question): void {
    this.#question = null
    if (name === 'y' || name === 'Y') yes()
    else this.say('left as it is')
  }

  /** Whatever host is chosen: what is compared is the output of all. */
  #fold(): void {
    this.#hosts.list.choose(allHosts)
    this.#select()
    void this.#log.fold([...this.#state.results.values()].map(({ hostname }) => hostname))
  }

  #copy(): void {
    this.#isCopying = true
    this.#isCopyShown = false
  }

  #copied(key: Key): void {
    if (['y', 'escape', 'q', 'enter'].includes(key.name)) this.#isCopying = false
    else if (key.name === 'w') this.#log.toggleWrap()
    else this.#log.key(key)
  }

  #nextError(direction: 'up' | 'down'): void {
    if (this.#focus === 'right') void this.#log.nextError(direction)
    else if (!this.#hosts.jump(direction, ({ id }) => this.#hasFailed(id))) this.say('no host has failed')
  }

  #hasFailed(id: number): boolean {
    const result = this.#state.results.get(id)
    return result !== undefined && isFailure(result.status)
  }

  #cancel(): void {
    if (!this.#state.isRunning) this.say(`the task has ended: ${this.#state.summary?.status}`)
    else {
      const { running, pending } = this.#state.tally()
      const text = `cancel this task? ${running} running and ${pending} waiting hosts end (y/n)`
      this.#question = { text, yes: () => this.#actions.cancel() }
    }
  }

  #retry(): void {
    const { failed, stopped } = this.#state.tally()
    if (this.#state.isRunning) this.say('the task still runs: retry it when it has ended')
    else if (failed + stopped === 0) this.say('every host has succeeded')
    else {
      const count = failed + stopped
      const text = `run it again on ${count} ${count === 1 ? 'host' : 'hosts'} that did not succeed? (y/n)`
      this.#question = { text, yes: () => this.#actions.retry() }
    }
  }

  #terminal(): void {
    const id = this.#hosts.list.chosen
    if (id === null || id === allHosts) this.say('choose a host first: t opens a terminal on it')
    else this.#actions.terminal(id)
  }

  #refresh(now: number): void {
    const { version } = this.#state
    const second = this.#state.isRunning ? Math.floor(now / 1000) : 0
    const shown = this.#shown
    if (shown?.version === version && shown.second === second) return
    this.#shown = { version, second }
    this.#hosts.set([...this.#state.results.values()].map((result) => resultRow(result, now)))
    if (this.#wanted === null || !this.#state.results.has(this.#wanted)) return
    this.#hosts.list.choose(this.#wanted)
    this.#wanted = null
  }

  #select(): void {
    const chosen = this.#hosts.list.chosen
    if (chosen === null || chosen === this.#selected || this.#state.summary === null) return
    this.#selected = chosen
    this.#log.select(chosen === allHosts ? null : chosen, this.#hosts.nameWidth)
  }

  #leftTitle(): Span[] {
    const { filter, count, shownCount } = this.#hosts
    const which = filter === '' ? `${count}` : `${shownCount} of ${count} with ${sanitizeLine(filter)}`
    return [{ text: ` Hosts ${which} ` }]
  }

  #right({ right, height }: Panes): Span[][] {
    if (right <= 0) return []
    const { results } = this.#state
    const told = noteRows(results, this.#selected ?? allHosts, right)
    const rows = this.#log.rows(right, Math.max(1, height - told.length))
    if (rows.length > 0 || !this.#reader.isLoaded) return [...told, ...rows]
    const text = this.#state.isRunning ? '  no output yet' : '  no output'
    return [...told, [{ text, style: { dim: true } }]]
  }

  #foot(cols: number): Row {
    if (this.#question !== null)
      return footOf(cols, [], { text: this.#question.text, style: { fg: 'yellow', bold: true } })
    if (this.#note !== null) return footOf(cols, [], this.#note)
    if (this.lost !== null) return footOf(cols, [], { text: this.lost, style: { fg: 'yellow', bold: true } })
    return footOf(cols, taskKeys(this.#focus, this.#state.isRunning), null)
  }
}
