import Table from 'cli-table3'
import { sanitizeLine } from './sanitize.ts'
import { isUtf8, paint } from './screen.ts'

/** One column: its heading and what it shows of a row. */
export interface Column<Row> {
  readonly heading: string
  readonly value: (row: Row) => string | number | null
}

/** No column is cut below this many characters. */
const narrowest = 6
const gap = 2

/** Cuts the widest columns, one character at a time, until the row fits. */
function fit(widths: number[], width: number): number[] {
  const fitted = [...widths]
  const total = () => fitted.reduce((sum, each) => sum + each + gap, -gap)
  while (total() > width) {
    const widest = Math.max(...fitted)
    if (widest <= narrowest) break
    fitted[fitted.indexOf(widest)] = widest - 1
  }
  return fitted
}

function cut(text: string, width: number): string {
  if (text.length <= width) return text
  const mark = isUtf8() ? '…' : '~'
  return text.slice(0, Math.max(0, width - 1)) + mark
}

/**
 * Rows under headings, without borders. On a terminal it is made to fit; elsewhere nothing is cut, so that programs read
 * whole values. Data of hosts loses its control sequences.
 */
export function renderTable<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  width: number | undefined = process.stdout.isTTY ? process.stdout.columns : undefined,
): string {
  const cells = rows.map((row) => columns.map((column) => sanitizeLine(String(column.value(row) ?? '-'))))
  const natural = columns.map((column, at) =>
    Math.max(column.heading.length, ...cells.map((row) => row[at]?.length ?? 0)),
  )
  const widths = width === undefined ? natural : fit(natural, width)
  const none = { top: '', 'top-mid': '', 'top-left': '', 'top-right': '', bottom: '', 'bottom-mid': '' }
  const noneElse = { 'bottom-left': '', 'bottom-right': '', left: '', 'left-mid': '', mid: '', 'mid-mid': '' }
  const table = new Table({
    chars: { ...none, ...noneElse, right: '', 'right-mid': '', middle: ' '.repeat(gap) },
    style: { 'padding-left': 0, 'padding-right': 0, head: [], border: [], compact: true },
  })
  table.push(columns.map((column, at) => cut(column.heading, widths[at] ?? 0)))
  for (const row of cells) table.push(row.map((cell, at) => cut(cell, widths[at] ?? 0)))
  const [head = '', ...body] = table.toString().split('\n')
  return [paint('bold', head.trimEnd()), ...body.map((line) => line.trimEnd())].join('\n')
}

/** One record, a line for each field; those that are `warned` of stand out. */
export function renderFields(
  fields: Record<string, string | number | boolean | null>,
  warned: readonly string[] = [],
): string {
  const width = Math.max(...Object.keys(fields).map((name) => name.length))
  return Object.entries(fields)
    .map(([name, value]) => {
      const text = sanitizeLine(String(value ?? '-'))
      return `${paint('bold', name.padEnd(width))}  ${warned.includes(name) ? paint('yellow', text) : text}`
    })
    .join('\n')
}
