import { isFailure } from '../../../core/tasks/task.ts'
import type { TaskState } from '../../task/task-state.ts'
import type { LogReader } from '../log/reader.ts'
import type { Frame, Key, Row, Size, Span } from '../screen/screen.ts'
import { type Focus, type Panes, Prompt, rowOf } from './drawing.ts'
import { allHosts, resultRow } from './host-pane.ts'
import { LogPane } from './log-pane.ts'
import { helpLines, Report } from './overlay.ts'
import { logState, logTitle, noteRows, taskHelp, taskKeys, taskProgress, taskTitle } from './task-rows.ts'
import { TwoPanes } from './two-panes.ts'

const mouseNote = 'select and copy with the mouse; y goes back'

/** The log alone, plain and in full width, for selecting in the terminal. */
function copyFrame(log: LogPane, { cols, rows }: Size): Frame {
  const shown = log.plainRows(cols, Math.max(1, rows - 1))
  const body = Array.from({ length: rows - 1 }, (_, at): Row => [{ at: 0, spans: shown[at] ?? [] }])
  return { rows: [...body, rowOf(cols, { text: mouseNote, style: { inverse: true } })], mouse: false }
}

/** Actions on a task; each reports its outcome through `say`. */
export interface TaskActions {
  cancel(): void
  retry(): void
  terminal(hostId: number): void
  back(): void
}

export class TaskView extends TwoPanes<'search' | 'filter'> {
  readonly #state: TaskState
  readonly #reader: LogReader
  readonly #actions: TaskActions
  readonly #log: LogPane
  #isCopying = false
  #isCopyShown = false
  #shown: { version: number; second: number } | null = null
  #selected: number | null = null
  #wanted: number | null = null
  /** Shown only while the task runs. */
  #noteOfRun: Span | null = null

  constructor(state: TaskState, reader: LogReader, actions: TaskActions) {
    super(actions)
    this.#state = state
    this.#reader = reader
    this.#actions = actions
    this.#log = new LogPane(reader, this.say)
  }

  /** Chooses this host as soon as it is known. */
  choose(hostId: number): void {
    this.#wanted = hostId
  }

  /** Shows a note until the task has ended. */
  sayOfRun(text: string): void {
    this.say(text)
    this.#noteOfRun = this.note
  }

  /** No drawing while text is being selected, once there is text to select. */
  get isCopying(): boolean {
    return this.#isCopying && this.#isCopyShown
  }

  get isReady(): boolean {
    return this.#state.summary !== null
  }

  override get isTyping(): boolean {
    return super.isTyping || this.#isCopying
  }

  key(key: Key): void {
    this.note = null
    if (this.answer(key, 'nothing was changed')) {
      // The key was for the prompt or the question.
    } else if (this.report !== null) this.report = null
    else if (this.#isCopying) this.#copied(key)
    else if (!this.#command(key)) this.#moved(key)
    // At once instead of with the next frame, because the next key may act on the chosen log.
    this.#select()
  }

  protected scroll(by: number): void {
    this.#log.scroll(by)
  }

  protected press(pane: Focus, row: number, { height }: Panes): void {
    const id = pane === 'left' ? this.hosts.list.shown(height)[row] : undefined
    if (id !== undefined) this.hosts.list.choose(id)
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
    return this.draw(size, (panes) => ({
      // First, because the title depends on what the log shows.
      right: this.#right(panes),
      title: taskTitle(this.#state, size.cols, now),
      progress: taskProgress(this.#state, size.cols),
      rightTitle: logTitle(this.#log, this.hosts.row(this.#selected ?? allHosts)),
      rightState: logState(this.#log, this.#reader, this.#state.isRunning),
      foot: this.foot(size.cols, taskKeys(this.focus, this.#state.isRunning)),
    }))
  }

  /** Runs the command of a key; returns false for keys that only move. */
  #command(key: Key): boolean {
    const { name } = key
    const commands: Readonly<Record<string, () => void>> = {
      tab: () => this.turn(),
      'S-tab': () => this.turn(),
      enter: () => this.turn(),
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
      t: () => this.openTerminal(),
      '?': () => {
        this.report = new Report(helpLines('Keys of a task', taskHelp))
      },
    }
    const command = Object.hasOwn(commands, name) ? commands[name] : undefined
    command?.()
    return command !== undefined
  }

  #moved(key: Key): void {
    if (this.focus === 'right') this.#log.key(key)
    else {
      const step = this.stepOf(key.name)
      if (step !== undefined) this.hosts.list.move(step)
    }
  }

  #escape(): void {
    if (this.#log.clearSearch()) return
    if (this.hosts.filter !== '') this.hosts.filter = ''
    else if (this.focus === 'right') this.focus = 'left'
    else this.#actions.back()
  }

  #ask(of: 'search' | 'filter', label: string): void {
    this.prompt = { line: new Prompt(label, of === 'filter' ? this.hosts.filter : ''), of }
  }

  protected typed(of: 'search' | 'filter', text: string, how: 'typed' | 'done' | 'left'): void {
    if (of === 'filter') this.hosts.filter = text
    else if (how === 'done') void this.#log.search(text)
  }

  /** Folding compares all hosts, whichever is chosen. */
  #fold(): void {
    this.hosts.list.choose(allHosts)
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
    if (this.focus === 'right') void this.#log.nextError(direction)
    else if (!this.hosts.jump(direction, ({ id }) => this.#hasFailed(id))) this.say('no host has failed')
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
      this.question = { asked: text, yes: () => this.#actions.cancel() }
    }
  }

  #retry(): void {
    const { failed, stopped } = this.#state.tally()
    if (this.#state.isRunning) this.say('the task is still running: retry it when it has ended')
    else if (failed + stopped === 0) this.say('every host has succeeded')
    else {
      const count = failed + stopped
      const text = `run it again on ${count} ${count === 1 ? 'host' : 'hosts'} that did not succeed? (y/n)`
      this.question = { asked: text, yes: () => this.#actions.retry() }
    }
  }

  #refresh(now: number): void {
    if (!this.#state.isRunning && this.note === this.#noteOfRun) this.note = null
    const { version } = this.#state
    const second = this.#state.isRunning ? Math.floor(now / 1000) : 0
    const shown = this.#shown
    if (shown?.version === version && shown.second === second) return
    this.#shown = { version, second }
    this.hosts.set([...this.#state.results.values()].map((result) => resultRow(result, now)))
    if (this.#wanted === null || !this.#state.results.has(this.#wanted)) return
    this.hosts.list.choose(this.#wanted)
    this.#wanted = null
  }

  #select(): void {
    const chosen = this.hosts.list.chosen
    if (chosen === null || chosen === this.#selected || this.#state.summary === null) return
    this.#selected = chosen
    this.#log.select(chosen === allHosts ? null : chosen, this.hosts.nameWidth)
  }

  #right({ right, height }: Panes): Span[][] {
    if (right <= 0) return []
    const { results } = this.#state
    const notes = noteRows(results, this.#selected ?? allHosts, right)
    const rows = this.#log.rows(right, Math.max(1, height - notes.length))
    if (rows.length > 0 || !this.#reader.isLoaded) return [...notes, ...rows]
    const text = this.#state.isRunning ? '  no output yet' : '  no output'
    return [...notes, [{ text, style: { dim: true } }]]
  }
}
