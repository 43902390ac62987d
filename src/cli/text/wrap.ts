import { widthOf } from './width.ts'

const commandIndent = '  '

/** Programs whose following words form a command. */
const program = /^[("]*(?:rsm|node|sudo|chmod|chown|kill|openssl)$/
/** End of a command in a sentence: punctuation, or a word that no command contains. */
const closing = /[,;:)]$/
const conjunctions = new Set(['and', 'or', 'then', 'to', 'names', 'prints', 'shows', 'with'])

/** Splits a sentence into words; a command, or text between backticks, is one unit. */
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

/** Wraps a sentence at spaces, never inside a command: a longer command gets its own line. */
export function wrapSentence(text: string, width: number): string[] {
  return filled(unbroken(text), width)
}

/** A word longer than `width` gets its own line. */
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

/** Removes the backticks around commands: one line if it fits, or wrapped prose with a line per command. */
export function wrapAdvice(text: string, width: number | undefined): string[] {
  const plain = text.replaceAll('`', '')
  if (width === undefined || widthOf(plain) <= width) return [plain]
  return text.split('`').flatMap((part, at) => {
    if (at % 2 === 1) return [commandIndent + part]
    const prose = part.replace(/^[;,.)]+/, '').trim()
    return prose === '' ? [] : wrapWords(prose, width)
  })
}
