import { createHash } from 'node:crypto'
import { type BackupEnd, sumsName } from './format.ts'

export class Sums {
  #text = ''
  #segments = 0
  readonly #all = createHash('sha256')
  #files = 0
  #bytes = 0
  /** Entries since the last checksum entry. */
  pending = 0

  add(name: string, bytes: Uint8Array): void {
    this.#text += `${createHash('sha256').update(bytes).digest('hex')}  ${name}\n`
    this.#files++
    this.#bytes += bytes.length
    this.pending++
  }

  /** Name and text of the next checksum entry. */
  next(): [name: string, text: string] {
    const text = this.#text
    this.#all.update(text)
    this.#text = ''
    this.pending = 0
    return [sumsName(++this.#segments), text]
  }

  end(): Omit<BackupEnd, 'damaged'> {
    return { files: this.#files, bytes: this.#bytes, sums: this.#all.digest('hex') }
  }
}
