import { closeSync, createReadStream, fstatSync, open, write } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { isMissing } from '../../../../disk/durable.ts'

const openFile = promisify(open)
const writeFile = promisify(write)

/** Limit for one host's day: 450,000 samples, so that one agent cannot fill the disk of all. */
const largestFile = 64 * 1024 * 1024
/** Twice the largest report (contract §1: bodies of 2 MiB). Longer lines are dropped, to bound memory. */
const longestLine = 4 * 1024 * 1024
const dayMilliseconds = 24 * 3600_000
const name = /^(\d{4}-\d\d-\d\d)\.jsonl$/

export function dayFileOf(at: number): string {
  return `${new Date(at).toISOString().slice(0, 10)}.jsonl`
}

/** End of the day of a file, in milliseconds since the epoch; null for a foreign file. */
export function endOfDay(file: string): number | null {
  const day = name.exec(file)?.[1]
  return day === undefined ? null : Date.parse(day) + dayMilliseconds
}

/**
 * Begins each line with a line feed instead of ending with one, so that a torn line cannot swallow the next.
 * Returns false, with nothing written, if the file has reached its limit.
 * Only calls that may wait for the disk use libuv's threads. With a file for each of thousands of hosts,
 * switching threads would be most of the cost.
 */
export async function appendLines(path: string, lines: readonly string[]): Promise<boolean> {
  const descriptor = await openToAppend(path)
  try {
    if (fstatSync(descriptor).size >= largestFile) return false
    let rest = Buffer.from(lines.map((line) => `\n${line}`).join(''))
    while (rest.length > 0) rest = rest.subarray((await writeFile(descriptor, rest)).bytesWritten)
    return true
  } finally {
    closeSync(descriptor)
  }
}

async function openToAppend(path: string): Promise<number> {
  try {
    return await openFile(path, 'a', 0o600)
  } catch (error) {
    if (!isMissing(error)) throw error
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    return openFile(path, 'a', 0o600)
  }
}

/**
 * A missing file is empty. Splits here, because readline also breaks at characters that JSON does not escape.
 */
export async function* linesOf(path: string): AsyncGenerator<string> {
  let rest = ''
  try {
    for await (const piece of createReadStream(path, { encoding: 'utf8' })) {
      const [end = '', ...begun] = String(piece).split('\n')
      const lines = [rest + end, ...begun]
      rest = lines.pop() ?? ''
      if (rest.length > longestLine) rest = ''
      yield* lines
    }
  } catch (error) {
    if (!isMissing(error)) throw error
  }
  yield rest
}
