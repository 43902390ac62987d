import { RsmError } from '../../core/errors.ts'

export type Escape = 'leave' | 'help' | 'suspend'

/** Parsed input, in order: text for the shell, or a command for rsm. */
export type Typed = { readonly send: string } | { readonly escape: Escape }

const suspendKey = '\u001a'
const pasteBegin = '\u001b[200~'
const pasteEnd = '\u001b[201~'

/** The character given by `--escape`: one character, `^X` for a control character, `none`. */
export function escapeCharacter(word: string): string | undefined {
  if (word.toLowerCase() === 'none') return undefined
  if (/^\^[@-_a-z?]$/.test(word))
    return word === '^?' ? '\u007f' : String.fromCharCode(word.toUpperCase().charCodeAt(1) & 0x1f)
  if (Array.from(word).length === 1) return word
  throw new RsmError('usage', `--escape takes one character or none, not ${word}`, {
    hint: "for example: --escape '%', --escape ^B, --escape none",
  })
}

export function shownCharacter(character: string): string {
  const code = character.charCodeAt(0)
  if (code === 0x7f) return '^?'
  return code < 0x20 ? `^${String.fromCharCode(code + 0x40)}` : character
}

/**
 * Finds escapes as ssh does: at the beginning of a line, twice for the character itself. Bracketed pastes
 * contain none, because pasted text must not end a session.
 */
export class EscapeReader {
  readonly #character: string | undefined
  #atLineStart = true
  #isPending = false
  #isPasting = false
  /** Last characters, as many as a paste mark has. */
  #recent = ''

  constructor(character: string | undefined) {
    this.#character = character
  }

  read(text: string): Typed[] {
    if (this.#character === undefined) return [{ send: text }]
    const typed: Typed[] = []
    let send = ''
    for (const character of text) {
      const escape = this.#step(character)
      if (escape === undefined) send += character
      else if (escape === 'both') send += this.#character + character
      else if (escape !== 'held') {
        if (send !== '') typed.push({ send })
        send = ''
        typed.push({ escape })
      }
    }
    if (send !== '') typed.push({ send })
    return typed
  }

  #step(character: string): Escape | 'held' | 'both' | undefined {
    this.#recent = (this.#recent + character).slice(-pasteBegin.length)
    if (this.#recent === pasteBegin) this.#isPasting = true
    if (this.#recent === pasteEnd) this.#isPasting = false
    const wasPending = this.#isPending
    this.#isPending = false
    if (wasPending) {
      if (character === '.') return 'leave'
      if (character === '?') return 'help'
      if (character === suspendKey) return 'suspend'
    } else if (this.#atLineStart && !this.#isPasting && character === this.#character) {
      this.#isPending = true
      return 'held'
    }
    this.#atLineStart = character === '\r' || character === '\n'
    return wasPending && character !== this.#character ? 'both' : undefined
  }
}
