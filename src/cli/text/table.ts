import Table from 'cli-table3'
import { sanitizeLine } from './sanitize.ts'
import { columnsOf, isUtf8, paint, type Tone } from './screen.ts'
import { beginningOf, widthOf, withoutBidi, wrapWords } from './width.ts'

export interface Column<Row> {
  readonly heading: string
  readonly value: (row: Row) => string | number | null
  /** Identifies the row: on a narrow terminal, other columns shrink first. */
  readonly essential?: boolean
  /** Dropped instead of cut, because a part is meaningless. */
  readonly uncut?: boolean
  /** A shorter value, for when rows do not fit. */
  readonly short?: (row: Row) => string | number | null
  /** Dropped if rows do not fit without being cut. */
  readonly spare?: boolean
  readonly tone?: (row: Row) => Tone | undefined
  /** An even shorter value, tried before columns are dropped. */
  readonly shortest?: (row: Row) => string | number | null
  /** Wraps instead of being cut; for the last column. */
  readonly wrap?: boolean
}

/** Columns that remain of a cut column at least. */
const narrowest = 6
const gap = 2
/** Columns that remain for a field's text at least. */
const narrowestText = 20
/**
 * One column wide by any measure, including cli-table3's. Text that is passed on unchanged never contains it.
 */
const standIn = '\ue000'
const standIns = /\ue000+/g
const isPlain = (text: string) => /^[ -~]*$/.test(text)

/** Shrinks the widest columns that may be cut, one character at a time, until the row fits. */
function fit(widths: readonly number[], width: number, mayCut: (at: number) => boolean): number[] {
  const fitted = [...widths]
  let over = fitted.reduce((sum, each) => sum + each + gap, -gap) - width
  for (; over > 0; over--) {
    let widest = -1
    for (const [at, each] of fitted.entries())
      if (mayCut(at) && each > narrowest && each > (fitted[widest] ?? 0)) widest = at
    if (widest === -1) break
    fitted[widest] = (fitted[widest] ?? 0) - 1
  }
  return fitted
}

interface Laid<Row> {
  readonly column: Column<Row>
  readonly cells: readonly string[]
  readonly width: number
}

function laidOutOf<Row>(
  rows: readonly Row[],
  column: Column<Row>,
  value: Column<Row>['value'] = column.value,
): Laid<Row> {
  const cells = rows.map((row) => withoutBidi(sanitizeLine(String(value(row) ?? '-'))))
  const width = cells.reduce((widest, cell) => Math.max(widest, widthOf(cell)), column.heading.length)
  return { column, cells, width }
}

const totalOf = (laid: readonly { readonly width: number }[]) =>
  laid.reduce((sum, each) => sum + each.width + gap, -gap)

/** Drops columns without `essential`, rightmost first, until the rest fits when cut; never the first. */
function withoutLast<Row>(laid: readonly Laid<Row>[], width: number): readonly Laid<Row>[] {
  const least = laid.map(({ column, width }) => ({
    width: column.essential || column.uncut ? width : Math.min(width, narrowest),
  }))
  const last = laid.findLastIndex(({ column }) => column.essential !== true)
  if (last < 1 || totalOf(least) <= width) return laid
  return withoutLast(
    laid.filter((_, at) => at !== last),
    width,
  )
}

/** Columns to which the last column, often a long text, shrinks before others are shortened. */
const narrowestLast = 40

function fitsCut<Row>(laid: readonly Laid<Row>[], width: number): boolean {
  const last = laid.at(-1)
  const isCut = last && last.column.essential !== true && last.column.uncut !== true
  return totalOf(laid) - (isCut ? Math.max(0, last.width - narrowestLast) : 0) <= width
}

/** Tries full values, short ones, dropping spare columns, the shortest values, dropping columns. */
function roomFor<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  width: number | undefined,
): readonly Laid<Row>[] {
  const whole = columns.map((column) => laidOutOf(rows, column))
  if (width === undefined || fitsCut(whole, width)) return whole
  const short = columns.map((column) => laidOutOf(rows, column, column.short))
  if (totalOf(short) <= width) return short
  const needed = short.filter(({ column }) => column.spare !== true)
  if (totalOf(needed) <= width) return needed
  const shortest = needed.map((laid) =>
    laid.column.shortest === undefined ? laid : laidOutOf(rows, laid.column, laid.column.shortest),
  )
  return withoutLast(shortest, width)
}

/** Number of columns from the left that fit on the terminal uncut; at least `least`. */
export function columnsThatFit<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  least: number,
  width: number | undefined = columnsOf(process.stdout),
): number {
  if (width === undefined) return columns.length
  const laid = columns.map((column) => laidOutOf(rows, column, column.short))
  let count = columns.length
  while (count > least && totalOf(laid.slice(0, count)) > width) count--
  return count
}

/** Cuts text to `width` columns, with a mark. */
export function cutTo(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  return beginningOf(text, width - 1) + (isUtf8() ? '\u2026' : '~')
}

/**
 * Fits a terminal; elsewhere nothing is cut, so that programs read whole values. Control sequences are
 * removed.
 */
export function renderTable<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  width: number | undefined = columnsOf(process.stdout),
): string {
  const laid = roomFor(rows, columns, width)
  const natural = laid.map((each) => each.width)
  const kept = (at: number) => laid[at]?.column.essential === true
  const mayCut = (at: number) => laid[at]?.column.uncut !== true
  const widths =
    width === undefined
      ? natural
      : fit(
          fit(natural, width, (at) => !kept(at) && mayCut(at)),
          width,
          (at) => kept(at) && mayCut(at),
        )
  const none = { top: '', 'top-mid': '', 'top-left': '', 'top-right': '', bottom: '', 'bottom-mid': '' }
  const noneElse = { 'bottom-left': '', 'bottom-right': '', left: '', 'left-mid': '', mid: '', 'mid-mid': '' }
  const table = new Table({
    chars: { ...none, ...noneElse, right: '', 'right-mid': '', middle: ' '.repeat(gap) },
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [], compact: true },
  })
  // cli-table3 overestimates joined and combining characters, so it lays out stand-ins of the right width.
  const foreign: string[] = []
  const standInFor = (shown: string) => {
    if (isPlain(shown)) return shown
    const columnsOf = widthOf(shown)
    if (columnsOf > 0) foreign.push(shown)
    return standIn.repeat(columnsOf)
  }
  const laidOut = (text: string, at: number) => {
    const room = widths[at] ?? 0
    const shown = laid[at]?.column.wrap === true ? wrapWords(text, room) : [text]
    return shown.map((line) => standInFor(cutTo(line, room))).join('\n')
  }
  table.push(laid.map(({ column }, at) => laidOut(column.heading, at)))
  for (const [at, row] of rows.entries())
    table.push(
      laid.map(({ column, cells }, index) => {
        const text = laidOut(cells[at] ?? '', index)
        const tone = column.tone?.(row)
        return tone === undefined ? text : paint(tone, text)
      }),
    )
  const text = table.toString().replace(standIns, () => foreign.shift() ?? '')
  const [head = '', ...body] = text.split('\n')
  return [paint('bold', head.trimEnd()), ...body.map((line) => line.trimEnd())].join('\n')
}

/** One record, a line per field, wrapped on a terminal; fields in `warned` are highlighted. */
export function renderFields(
  fields: Record<string, string | number | boolean | null>,
  warned: readonly string[] = [],
  columns: number | undefined = columnsOf(process.stdout),
): string {
  const width = Math.max(...Object.keys(fields).map((name) => name.length))
  const margin = width + gap
  const room = columns === undefined ? undefined : Math.max(narrowestText, columns - margin)
  return Object.entries(fields)
    .map(([name, value]) => {
      const text = withoutBidi(sanitizeLine(String(value ?? '') || '-'))
      const lines = wrapWords(text, room).map((line) =>
        warned.includes(name) ? paint('yellow', line) : line,
      )
      return paint('bold', name.padEnd(width)) + ' '.repeat(gap) + lines.join(`\n${' '.repeat(margin)}`)
    })
    .join('\n')
}
