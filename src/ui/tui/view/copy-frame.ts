import type { Frame, Row, Size } from '../screen/screen.ts'
import { rowOf } from './fit.ts'
import type { LogPane } from './log-pane.ts'

const told = "the mouse is your terminal's: select and copy; y goes back"

/** The log alone, bare and over the whole width, for the terminal's own selection. */
export function copyFrame(log: LogPane, { cols, rows }: Size): Frame {
  const shown = log.plainRows(cols, Math.max(1, rows - 1))
  const body = Array.from({ length: rows - 1 }, (_, at): Row => [{ at: 0, spans: shown[at] ?? [] }])
  return { rows: [...body, rowOf(cols, { text: told, style: { inverse: true } })], mouse: false }
}
