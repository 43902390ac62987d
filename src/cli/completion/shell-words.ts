export type Quote = '' | "'" | '"'

/** A command line up to the cursor, split like a shell does, without expansion. */
export interface ShellLine {
  /** Unquoted words before the one under the cursor. */
  readonly words: readonly string[]
  readonly current: string
  readonly raw: string
  readonly quote: Quote
  /** Whether the word contains an expansion such as `$HOME`, whose value is unknown here. */
  readonly isExpanded: boolean
  /** Whether the word is the file of a `<` or `>`. */
  readonly isRedirection: boolean
}

/** Reads a line of bash, zsh or fish up to the cursor, starting after the last `;`, `|` or `&`. */
export function readShellLine(line: string): ShellLine {
  let words: string[] = []
  let start = 0
  let current = ''
  let quote: Quote = ''
  let isExpanded = false
  let isRedirection = false
  const end = (at: number) => {
    if (at > start && !isRedirection) words.push(current)
    if (at > start) isRedirection = false
    current = ''
    isExpanded = false
    start = at + 1
  }
  for (let at = 0; at < line.length; at++) {
    const sign = line.charAt(at)
    if (quote === "'") {
      if (sign === "'") quote = ''
      else current += sign
    } else if (sign === '\\' && (quote === '' || '$`"\\\n'.includes(line.charAt(at + 1)))) {
      current += line.charAt(++at)
    } else if (quote === '"') {
      if (sign === '"') quote = ''
      else {
        current += sign
        if (sign === '$' || sign === '`') isExpanded = true
      }
    } else if (sign === "'" || sign === '"') quote = sign
    else if (/\s/.test(sign)) end(at)
    else if (sign === '<' || sign === '>') {
      // A file descriptor, as in `2>`.
      if (/^\d+$/.test(line.slice(start, at))) start = at
      end(at)
      isRedirection = true
    } else if (sign === '&' && isRedirection && at === start) start = at + 1
    else if (';|&'.includes(sign)) {
      end(at)
      words = []
    } else {
      current += sign
      if (sign === '$' || sign === '`') isExpanded = true
    }
  }
  return { words, current, raw: line.slice(start), quote, isExpanded, isRedirection }
}

const plain = /^[\p{L}\p{N}_@%+=:,./-]$/u

/** Escapes text within an open quote; undefined if that is impossible. */
export function quoted(text: string, quote: Quote): string | undefined {
  if (quote === "'") return text.replaceAll("'", "'\\''")
  // Interactive shells expand `!` from the history, and would keep a backslash before it.
  if (quote === '"') return text.includes('!') ? undefined : text.replace(/[$`"\\]/g, '\\$&')
  return Array.from(text, (sign) => (plain.test(sign) ? sign : `\\${sign}`)).join('')
}
