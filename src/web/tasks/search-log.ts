import { logPages } from './log-entries.ts'
import { type OutputLine, OutputLines } from './output-lines.ts'

/** Whether a line holds what is searched for; case does not matter. */
export const holdsText = (text: string, search: string): boolean =>
  text.toLowerCase().includes(search.toLowerCase())

/** The lines of a whole log, of one host or of all, that hold a text: the last of them, where there are very many. */
export async function searchLog(
  taskId: string,
  hostId: number | undefined,
  search: string,
  signal: AbortSignal,
): Promise<readonly OutputLine[]> {
  const found = new OutputLines((text) => holdsText(text, search))
  for await (const { entries } of logPages(taskId, { hostId, signal })) found.push(entries)
  found.finish()
  return found.lines
}
