import { sanitizeLine } from '../../text/sanitize.ts'
import { widthOf } from '../../text/width.ts'
import type { Frame, Key, Mouse, Row, Size, Span } from '../screen/screen.ts'
import {
  assemble,
  type Focus,
  footOf,
  type Keys,
  type Panes,
  type Parts,
  type Prompt,
  panesOf,
} from './drawing.ts'
import { allHosts, HostPane } from './host-pane.ts'
import { stepOf } from './list.ts'
import { overlay, type Report } from './overlay.ts'

const wheelStep = 3

/** Hosts on the left, and a view's details on the right. */
export abstract class TwoPanes<Of extends string> {
  readonly #actions: { terminal(hostId: number): void }
  protected readonly hosts = new HostPane()
  protected focus: Focus = 'left'
  /** As last drawn. */
  protected panes: Panes | null = null
  protected prompt: { readonly line: Prompt; readonly of: Of } | null = null
  /** Asked in the foot, or in a box of lines. */
  protected question: { readonly asked: string | readonly Span[][]; readonly yes: () => void } | null = null
  protected report: Report | null = null
  protected note: Span | null = null
  /** Why updates are interrupted, or null. */
  lost: string | null = null

  constructor(actions: { terminal(hostId: number): void }) {
    this.#actions = actions
  }

  readonly say = (text: string, isBad = false): void => {
    this.note = { text: sanitizeLine(text), style: isBad ? { fg: 'red', bold: true } : { bold: true } }
  }

  /** Whether every key, even `q`, belongs to a prompt, question or report. */
  get isTyping(): boolean {
    return this.#isAsking || this.report !== null
  }

  mouse({ action, x, y }: Mouse): void {
    if (this.panes === null || this.#isAsking) return
    const isLeft = x < this.panes.left
    if (action !== 'press') {
      const by = action === 'wheelup' ? -wheelStep : wheelStep
      if (isLeft) this.hosts.list.move(by)
      else this.scroll(by)
      return
    }
    this.report = null
    this.focus = isLeft ? 'left' : 'right'
    const row = y - this.panes.top
    if (row >= 0) this.press(this.focus, row, this.panes)
  }

  /** Called with the text of a prompt as it changes: '' if it was left. */
  protected abstract typed(of: Of, text: string, how: ReturnType<Prompt['key']>): void
  protected abstract scroll(by: number): void
  protected abstract press(pane: Focus, row: number, panes: Panes): void

  /** Draws both panes; `rest` is called once their widths are known. */
  protected draw(
    size: Size,
    rest: (panes: Panes) => Omit<Parts, 'leftTitle' | 'left' | 'focus' | 'prompt'>,
  ): Frame {
    const { filter, count, shownCount } = this.hosts
    const which = filter === '' ? `${count}` : `${shownCount} of ${count} with ${sanitizeLine(filter)}`
    const title = ` Hosts ${which} `
    const panes = panesOf(size, Math.max(this.hosts.wanted, widthOf(title)), this.focus)
    this.panes = panes
    const frame = assemble(size, panes, {
      ...rest(panes),
      leftTitle: [{ text: title }],
      left: this.hosts.rows(panes.left, panes.height, this.focus === 'left'),
      focus: this.focus,
      prompt: this.prompt?.line ?? null,
    })
    const { question, report } = this
    if (typeof question?.asked === 'object') return overlay(frame, size, question.asked)
    return report?.over(frame, size) ?? frame
  }

  protected turn(): void {
    this.focus = this.focus === 'left' ? 'right' : 'left'
  }

  /** Rows that a key moves in a list; undefined for other keys. */
  protected stepOf(name: string): number | undefined {
    return stepOf(name, this.panes?.height ?? 10)
  }

  /** Passes a key to an open prompt or question; false if there is none. Any key but y answers `no`. */
  protected answer(key: Key, no: string): boolean {
    const { prompt, question } = this
    if (prompt !== null) {
      const how = prompt.line.key(key)
      if (how !== 'typed') this.prompt = null
      this.typed(prompt.of, how === 'left' ? '' : prompt.line.text, how)
    } else if (question !== null) {
      this.question = null
      if (key.name === 'y' || key.name === 'Y') question.yes()
      else this.say(no)
    }
    return prompt !== null || question !== null
  }

  protected openTerminal(): void {
    const id = this.hosts.list.chosen
    if (id === null || id === allHosts) this.say('choose a host first: t opens a terminal on it')
    else this.#actions.terminal(id)
  }

  /** Shows the question, else the last note, else the fault, else the keys. */
  protected foot(cols: number, keys: Keys): Row {
    const asked = this.question?.asked
    const warned = typeof asked === 'string' ? asked : this.note === null ? this.lost : null
    return footOf(
      cols,
      keys,
      warned === null ? this.note : { text: warned, style: { fg: 'yellow', bold: true } },
    )
  }

  get #isAsking(): boolean {
    return this.prompt !== null || this.question !== null
  }
}
