import { widthOf } from './width.ts'

/** How far a command stands in from the prose around it. */
const commandIndent = '  '

/** A line broken at its blanks into lines of at most `width` columns; a word that is longer stands alone, whole. */
export function wrapWords(text: string, width: number | undefined): string[] {
  if (width === undefined || widthOf(text) <= width) return [text]
  const lines: string[] = []
  let line = ''
  for (const word of text.split(' ')) {
    const longer = line === '' ? word : `${line} ${word}`
    if (line === '' || widthOf(longer) <= width) line = longer
    else {
      lines.push(line)
      line = word
    }
  }
  return [...lines, line]
}

/**
 * Prose in which commands to copy stand between backticks, without these: one line where it fits, else the prose wrapped
 * and each command unbroken on a line of its own.
 */
export function wrapAdvice(text: string, width: number | undefined): string[] {
  const plain = text.replaceAll('`', '')
  if (width === undefined || widthOf(plain) <= width) return [plain]
  return text.split('`').flatMap((part, at) => {
    if (at % 2 === 1) return [commandIndent + part]
    const prose = part.replace(/^[;,.)]+/, '').trim()
    return prose === '' ? [] : wrapWords(prose, width)
  })
}
