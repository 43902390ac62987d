import { widthOf } from './width.ts'

/** How far a command stands in from the prose around it. */
const commandIndent = '  '

/** Programs that are named to be typed with what follows them. */
const program = /^[("]*(?:rsm|node|sudo|chmod|chown|kill|openssl)$/
/** Where a command in a sentence ends: at punctuation, or at a word that no command contains. */
const closing = /[,;:)]$/
const conjunctions = new Set(['and', 'or', 'then', 'to', 'names', 'prints', 'with'])

/** The words of a sentence; a command that is to be copied, and what stands between backticks, is one. */
function unbroken(text: string): string[] {
  const words = text.split(' ')
  const parts: string[] = []
  for (let at = 0; at < words.length; ) {
    let end = at + 1
    const first = words[at] ?? ''
    if (first.startsWith('`')) {
      const last = words.findIndex((word, index) => index >= at && /.`[,;:.)]*$/.test(word))
      if (last !== -1) end = last + 1
    } else if (program.test(first))
      while (end < words.length && !closing.test(words[end - 1] ?? '') && !conjunctions.has(words[end] ?? ''))
        end++
    parts.push(words.slice(at, end).join(' '))
    at = end
  }
  return parts
}

/**
 * Breaks a sentence into lines of at most `width` columns at its spaces, but never inside a command: a command that is
 * wider stands alone.
 */
export function wrapSentence(text: string, width: number): string[] {
  return filled(unbroken(text), width)
}

/** A line broken at its blanks into lines of at most `width` columns; a word that is longer stands alone, whole. */
export function wrapWords(text: string, width: number | undefined): string[] {
  if (width === undefined || widthOf(text) <= width) return [text]
  return filled(text.split(' '), width)
}

function filled(parts: readonly string[], width: number): string[] {
  const lines: string[] = []
  let line = ''
  for (const word of parts) {
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
