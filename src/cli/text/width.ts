import { eastAsianWidth } from 'get-east-asian-width'

const plain = /^[ -~]*$/
/** Zero-width characters, including Hangul vowels and finals, which join the previous character. */
const invisible = /^[\p{Default_Ignorable_Code_Point}\p{Mn}\p{Me}\p{Cc}\p{Cf}\u1160-\u11ff]$/u
/** An emoji, or a character that a variation selector turns into one. Joined emoji are drawn as one. */
const emoji = /[\p{Emoji_Presentation}\ufe0f]/u
/** Marks, embeddings, overrides and isolates, which would reorder other cells of the line (UAX 9). */
const bidi = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

const commandIndent = '  '

/** Programs whose following words form a command. */
const program = /^[("]*(?:rsm|node|sudo|chmod|chown|kill|openssl)$/
/** End of a command in a sentence: punctuation, or a word that no command contains. */
const closing = /[,;:)]$/
const conjunctions = new Set(['and', 'or', 'then', 'to', 'names', 'prints', 'shows', 'with'])

let segmenter: Intl.Segmenter | undefined

/** Graphemes: characters as people see them, of one or several code points. */
function* graphemes(text: string): Generator<string> {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
  for (const { segment } of segmenter.segment(text)) yield segment
}

function graphemeWidth(grapheme: string): number {
  if (emoji.test(grapheme)) return 2
  let width = 0
  // Terminals draw each letter of a grapheme, as in Devanagari, in its own column.
  for (const character of grapheme)
    if (!invisible.test(character)) width += eastAsianWidth(character.codePointAt(0) ?? 0)
  return width
}

/** Columns that a terminal needs for a line of text without control sequences. */
export function widthOf(text: string): number {
  if (plain.test(text)) return text.length
  let width = 0
  for (const grapheme of graphemes(text)) width += graphemeWidth(grapheme)
  return width
}

/** The longest prefix of at most `width` columns, without splitting a grapheme. */
export function beginningOf(text: string, width: number): string {
  if (plain.test(text)) return text.slice(0, Math.max(0, width))
  let end = 0
  let taken = 0
  for (const grapheme of graphemes(text)) {
    taken += graphemeWidth(grapheme)
    if (taken > width) break
    end += grapheme.length
  }
  return text.slice(0, end)
}

export function withoutBidi(text: string): string {
  return plain.test(text) ? text : text.replace(bidi, '')
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

/** Removes the backticks around commands: one line if it fits, or wrapped prose with a line per command. */
export function wrapAdvice(text: string, width: number | undefined): string[] {
  const unmarked = text.replaceAll('`', '')
  if (width === undefined || widthOf(unmarked) <= width) return [unmarked]
  return text.split('`').flatMap((part, at) => {
    if (at % 2 === 1) return [commandIndent + part]
    const prose = part.replace(/^[;,.)]+/, '').trim()
    return prose === '' ? [] : wrapWords(prose, width)
  })
}

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
