import { widthOf } from '../../text/width.ts'
import type { Span } from '../screen/screen.ts'
import { fit, fitRight } from './fit.ts'
import { glyph } from './glyphs.ts'
import { type HostRow, inOrder } from './host-row.ts'
import { List } from './list.ts'

/** The row above the hosts, which stands for all of them. */
export const allHosts = 0

const timeWidth = 7
const widestState = 11
const markWidth = 2
const leastName = 10

/** The hosts, in their order, with what tells them apart. */
export class HostPane {
  readonly list = new List<number>()
  #filter = ''
  #rows = new Map<number, HostRow>()

  /** The width in which nothing is cut. */
  get wanted(): number {
    return markWidth + Math.max(leastName, this.longestName) + 1 + widestState + timeWidth + 1
  }

  longestName = 0

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
    this.longestName = rows.reduce((most, { name }) => Math.max(most, widthOf(name)), 0)
    this.#narrow()
  }

  #narrow(): void {
    const sought = this.#filter.toLowerCase()
    const fits = ({ name, state }: HostRow) =>
      sought === '' || name.toLowerCase().includes(sought) || state.toLowerCase().includes(sought)
    this.list.set([allHosts, ...inOrder([...this.#rows.values()].filter(fits)).map(({ id }) => id)])
  }

  /** The nearest of these hosts below or above the chosen row, from the other end if there is none. */
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
      const isChosen = id === this.list.chosen
      const spans = id === allHosts ? this.#all(width) : this.#host(id, width)
      if (!isChosen) return spans
      // The whole row as one: colours on top of it would be hard to read.
      const text = spans.map((span) => span.text).join('')
      return [{ text, style: isFocused ? { inverse: true, bold: true } : { inverse: true, dim: true } }]
    })
  }

  #all(width: number): Span[] {
    const count = String(this.shownCount)
    return [
      { text: fit('  all hosts', width - count.length - 1), style: { bold: true } },
      { text: `${count} ` },
    ]
  }

  #host(id: number, width: number): Span[] {
    const row = this.#rows.get(id)
    if (row === undefined) return []
    const { mark, name, state, time, style } = row
    const room = width - markWidth - timeWidth - 1
    const hasState = room - widestState - 1 >= Math.min(this.longestName, leastName)
    const nameWidth = hasState ? room - widestState - 1 : room
    return [
      { text: `${glyph(mark)} `, style },
      { text: fit(name, nameWidth) },
      ...(hasState ? [{ text: ` ${fit(state, widestState)}`, style }] : []),
      { text: `${fitRight(time, timeWidth)} `, style: { dim: true } },
    ]
  }
}
