import { integer } from '../flags/checks.ts'
import type { Column } from '../text/table.ts'
import type { BaseCommand } from './base-command.ts'

export const limitFlag = integer({ min: 1, helpValue: 'N', description: 'show at most N (default: all)' })

interface Listed<Row> {
  readonly content: readonly Row[]
  readonly totalElements: number
}

interface ListView<Row> {
  /** Plural. */
  readonly noun: string
  readonly columns: readonly Column<Row>[]
  /** Whether flags narrow the list. */
  readonly filtered: boolean
  /** Notice for an empty, unfiltered list. */
  readonly none: string
}

/** Notes that the list is empty, or that `--limit` truncated it (contract §9). */
export function sayCount(
  command: BaseCommand,
  { content, totalElements }: Listed<unknown>,
  { noun, filtered, none }: Omit<ListView<unknown>, 'columns'>,
): void {
  if (totalElements === 0) command.notice(filtered ? `no ${noun} match` : none)
  if (content.length < totalElements)
    command.notice(`${content.length} of ${totalElements} ${noun} shown (--limit)`)
}

export async function showList<Row>(
  command: BaseCommand,
  page: Listed<Row>,
  view: ListView<Row>,
): Promise<Listed<Row>> {
  if (page.content.length > 0 && !command.globals.json) {
    const { renderTable } = await import('../text/table.ts')
    await command.printLong(renderTable(page.content, view.columns))
  }
  sayCount(command, page, view)
  return page
}
