import { createReadStream } from 'node:fs'
import { mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'

/** One host's day: 450,000 samples. What one agent sends can not fill the disk of all. */
const largestFile = 64 * 1024 * 1024
const dayMilliseconds = 24 * 3600_000
const name = /^(\d{4}-\d\d-\d\d)\.jsonl$/

/** The file of the UTC day of a time. */
export function dayFileOf(at: number): string {
  return `${new Date(at).toISOString().slice(0, 10)}.jsonl`
}

/** When the day of a file ends, in milliseconds since the epoch; null for a file that is not ours. */
export function endOfDay(file: string): number | null {
  const day = name.exec(file)?.[1]
  return day === undefined ? null : Date.parse(day) + dayMilliseconds
}

/**
 * Each line begins, not ends, with a line feed: what a crash or a full disk tore can't swallow the line that follows.
 * False, and nothing written, when the file has grown as far as it may.
 */
export async function appendLines(path: string, lines: readonly string[]): Promise<boolean> {
  const handle = await openToAppend(path)
  try {
    if ((await handle.stat()).size >= largestFile) return false
    await handle.writeFile(lines.map((line) => `\n${line}`).join(''))
    return true
  } finally {
    await handle.close()
  }
}

async function openToAppend(path: string) {
  try {
    return await open(path, 'a', 0o600)
  } catch (error) {
    if (!isMissing(error)) throw error
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    return open(path, 'a', 0o600)
  }
}

/** None for a file that is not there. Split here, as readline also breaks at characters that JSON leaves as they are. */
export async function* linesOf(path: string): AsyncGenerator<string> {
  let rest = ''
  try {
    for await (const piece of createReadStream(path, { encoding: 'utf8' })) {
      const lines = (rest + String(piece)).split('\n')
      rest = lines.pop() ?? ''
      yield* lines
    }
  } catch (error) {
    if (!isMissing(error)) throw error
  }
  yield rest
}

export function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}
