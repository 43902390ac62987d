import { type FileHandle, open, readFile } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import { RsmError } from '../../../../core/errors.ts'

/** Ends the name of the file of checks beside a recording: asciicast has no room for them. */
export const sumsSuffix = '.sums'
const readBytes = 256 * 1024

/** The CRC-32 of the bytes from the one before up to `end`. */
interface Sum {
  readonly end: number
  readonly check: number
}

/** How far the checks of a recording go, and the check of what is in its file beyond that. */
export interface SumState {
  readonly end: number
  readonly check: number
}

export const lineOfSum = ({ end, check }: Sum): string => `${end} ${check.toString(16).padStart(8, '0')}\n`

/** The checks of a recording; none for one of 0.1.0. What a crash cut off at the end counts as not there. */
async function readSums(path: string): Promise<Sum[]> {
  const text = await readFile(path + sumsSuffix, 'latin1').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
  const sums: Sum[] = []
  const lines = text.split('\n')
  lines.pop()
  for (const [at, line] of lines.entries()) {
    const found = /^(\d{1,15}) ([0-9a-f]{8})$/.exec(line)
    const end = Number(found?.[1])
    if (!found || end <= (sums.at(-1)?.end ?? 0))
      throw damaged(`${path}${sumsSuffix}, line ${at + 1}, which has its checks`)
    sums.push({ end, check: Number.parseInt(found[2] ?? '', 16) })
  }
  return sums
}

function damaged(place: string): RsmError {
  return new RsmError('gone', `the recording is damaged: ${place}`, {
    hint: 'put it back from a backup',
  })
}

/** The CRC-32 of a part of a file. */
async function checkOf(file: FileHandle, from: number, to: number): Promise<number> {
  const buffer = Buffer.allocUnsafe(Math.min(readBytes, Math.max(1, to - from)))
  let check = 0
  for (let at = from; at < to; ) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, to - at), at)
    if (bytesRead === 0) return Number.NaN
    check = crc32(buffer.subarray(0, bytesRead), check)
    at += bytesRead
  }
  return check
}

/** Looks through the first `size` bytes of what should have `expected`. Errors: `gone` with file and place where they are not what was written. */
export async function verifyRecording(path: string, size: number, expected: number): Promise<void> {
  if (size < expected) throw damaged(`${path} ends at byte ${size}, not ${expected}`)
  const sums = await readSums(path)
  const file = await open(path, 'r')
  try {
    let from = 0
    for (const { end, check } of sums) {
      // Of one that is being written the checks may be ahead of what is asked for.
      if (end > size) break
      if ((await checkOf(file, from, end)) !== check) throw damaged(`${path}, bytes ${from} to ${end}`)
      from = end
    }
  } finally {
    await file.close()
  }
}

/** Takes up the checks of a recording that was cut at `size` bytes: opened at their end. */
export async function reopenSums(path: string, size: number): Promise<{ file: FileHandle; state: SumState }> {
  const sums = (await readSums(path)).filter(({ end }) => end <= size)
  const end = sums.at(-1)?.end ?? 0
  const file = await open(path + sumsSuffix, 'a', 0o600)
  try {
    const kept = sums.reduce((bytes, sum) => bytes + lineOfSum(sum).length, 0)
    await file.truncate(kept)
    const cast = await open(path, 'r')
    try {
      return { file, state: { end, check: await checkOf(cast, end, size) } }
    } finally {
      await cast.close()
    }
  } catch (error) {
    await file.close()
    throw error
  }
}
