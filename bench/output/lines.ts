import { once } from 'node:events'
import { createWriteStream } from 'node:fs'

export const megabyte: number = 1024 * 1024

/** Writes a typical log, with lines of 20 to 120 characters. */
export async function writeLines(path: string, megabytes: number): Promise<void> {
  const file = createWriteStream(path)
  const word = 'the quick brown fox jumps over the lazy dog, and over "quoted" \\ things '
  const lines: string[] = []
  for (let line = 0, bytes = 0; bytes < megabyte; line++) {
    const text = `${String(line).padStart(8, '0')} ${word.repeat(2).slice(0, 20 + ((line * 37) % 100))}\n`
    lines.push(text)
    bytes += text.length
  }
  const block = lines.join('').slice(0, megabyte)
  for (let count = 0; count < megabytes; count++) if (!file.write(block)) await once(file, 'drain')
  file.end()
  await once(file, 'close')
}
