import type { LogReader } from '../log/reader.ts'
import type { Span } from '../screen/screen.ts'
import type { HostRow } from './host-row.ts'
import type { LogPane } from './log-pane.ts'

/** Whose log it is, and what of it is shown; without a row that of all hosts. */
export function logTitle(log: LogPane, row: HostRow | undefined): Span[] {
  const title: Span[] = [{ text: ` ${row === undefined ? 'all hosts' : row.name} ` }]
  if (row !== undefined) title.push({ text: `${row.state} `, style: row.style })
  if (log.isFolded) title.push({ text: 'equal output once ', style: { fg: 'yellow' } })
  if (log.stream !== null) title.push({ text: `${log.stream} only `, style: { fg: 'yellow' } })
  if (!log.viewport.wrap) title.push({ text: 'not wrapped ' })
  if (log.sought !== null) title.push({ text: `/${log.sought} ` })
  return title
}

export function logState(log: LogPane, reader: LogReader, isRunning: boolean): Span[] {
  const { searching } = reader
  if (searching !== null)
    return [{ text: ` searching ${Math.round(searching * 100)} %, Esc stops `, style: { fg: 'yellow' } }]
  if (log.isFolded) return [{ text: ' b goes back ', style: { dim: true } }]
  if (!reader.isLoaded) return [{ text: ' reading... ' }]
  if (!log.viewport.isFollowing) return [{ text: ' F follows ', style: { fg: 'yellow' } }]
  return [{ text: isRunning ? ' following ' : ' end ', style: { dim: true } }]
}
