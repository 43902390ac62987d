import { structuredPatch } from 'diff'
import type { Colors } from './format.ts'

/** Milliseconds for all comparisons of one run, because a person waits for the output. */
const patience = 2000
const context = 3

const tones: Record<string, string> = { '+': '32', '-': '31', '@': '36' }

export class Differ {
  readonly #name: string
  readonly #text: string
  readonly #colors: Colors
  readonly #now: () => number
  #left = patience
  #isSpent = false

  constructor(name: string, text: string, colors: Colors, now: () => number = () => performance.now()) {
    this.#name = name
    this.#text = text
    this.#colors = colors
    this.#now = now
  }

  get isSpent(): boolean {
    return this.#isSpent
  }

  /** A unified diff; undefined if it would take too long. */
  unified(name: string, text: string): string | undefined {
    const began = this.#now()
    const patch =
      this.#left > 0
        ? structuredPatch('', '', this.#text, text, '', '', { context, timeout: this.#left })
        : undefined
    this.#left -= this.#now() - began
    if (patch === undefined) {
      this.#isSpent = true
      return undefined
    }
    const lines = [`--- ${this.#name}`, `+++ ${name}`]
    for (const { oldStart, oldLines, newStart, newLines, lines: changed } of patch.hunks)
      lines.push(`@@ -${oldStart},${oldLines} +${newStart},${newLines} @@`, ...changed)
    return `${this.#painted(lines).join('\n')}\n`
  }

  #painted(lines: string[]): string[] {
    if (this.#colors === 'none') return lines
    return lines.map((line) => {
      const tone = tones[line[0] ?? '']
      return tone === undefined ? line : `\u001b[${tone}m${line}\u001b[0m`
    })
  }
}
