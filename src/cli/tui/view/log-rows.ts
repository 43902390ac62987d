import { sanitizeLine } from '../../text/sanitize.ts'
import { widthOf } from '../../text/width.ts'
import { titleId } from '../log/folded.ts'
import type { LogRow } from '../log/viewport.ts'
import type { Span, Style } from '../screen/screen.ts'
import { fit } from './drawing.ts'

/** Two columns: a mark that distinguishes stderr without colours, too. */
export const markWidth = 2
const prefixStyles: readonly Style[] = (['cyan', 'green', 'yellow', 'blue', 'magenta'] as const).map(
  (fg) => ({ fg }),
)

interface RowStyle {
  readonly nameWidth: number
  readonly pattern: RegExp | undefined
  readonly isFound: boolean
}

export function logSpans({ part, line, text }: LogRow, { nameWidth, pattern, isFound }: RowStyle): Span[] {
  if (line.hostId === titleId) return [{ text, style: { bold: true, fg: 'cyan' } }]
  const isError = line.stream === 'stderr'
  const mark: Style = { ...(isError ? { fg: 'red' } : {}), inverse: isFound }
  const spans: Span[] = [{ text: isError ? '!' : ' ', style: mark }, { text: ' ' }]
  if (nameWidth > 0) {
    const name = part === 0 ? sanitizeLine(line.hostname) : ''
    spans.push({ text: `${fit(name, nameWidth)} `, style: prefixStyles[line.hostId % prefixStyles.length] })
  }
  return [...spans, ...highlighted(text, pattern, isError ? { fg: 'red' } : {}, isFound)]
}

function highlighted(text: string, pattern: RegExp | undefined, style: Style, isFound: boolean): Span[] {
  if (pattern === undefined) return [{ text, style }]
  const spans: Span[] = []
  let from = 0
  // `matchAll` starts at `lastIndex`, which an earlier test may have moved.
  pattern.lastIndex = 0
  for (const { 0: match, index } of text.matchAll(pattern)) {
    if (match === '') continue
    spans.push({ text: text.slice(from, index), style })
    spans.push({ text: match, style: { inverse: true, bold: isFound } })
    from = index + match.length
  }
  return [...spans, { text: text.slice(from), style }].filter((span) => widthOf(span.text) > 0)
}
